"""The recipe: its text, its meaning, its checks. Knows no cluster and no screen."""

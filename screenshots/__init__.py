"""Pictures of the app's screens, and the script that makes them."""

"""What the logs say: followed files -> lines -> events -> the state of a run."""

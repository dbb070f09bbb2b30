"""What takes a job."""

"""The configuration classes of a NeMo-RL checkout, read from its sources."""

"""YAML text: what it says as OmegaConf reads it, and edits of it as splices."""

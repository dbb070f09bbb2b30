"""YAML text: its values as OmegaConf reads them, and edits of it as splices."""

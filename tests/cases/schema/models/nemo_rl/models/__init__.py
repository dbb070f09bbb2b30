from .policy import PolicyConfig

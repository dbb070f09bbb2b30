from nemo_rl.algorithms.distillation import MasterConfig, setup


def main() -> None:
    config = MasterConfig(**{})
    setup(config)

try:
    from nemo_rl.data.moved import DataConfig
except ImportError:
    DataConfig = dict

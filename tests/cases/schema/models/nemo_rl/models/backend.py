from typing import Any

from pydantic import BaseModel, PositiveInt


class BackendConfig(BaseModel, extra="allow"):
    workers: PositiveInt = 8


def apply_transport(config: dict[str, Any]) -> BackendConfig | None:
    transport = config.get("transport")
    if transport is None:
        return None
    return BackendConfig.model_validate(config.get("backend_cfg") or {})

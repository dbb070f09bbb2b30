from typing import NotRequired, Union

from typing_extensions import TypedDict


class Source(TypedDict):
    name: str
    share: NotRequired[float]


class DataConfig(TypedDict):
    shuffle: bool
    train: Union[Source, list[Source]]
    validation: NotRequired[Source | list[Source] | None]

from typing import Literal

Kind = Literal["small", "large"]

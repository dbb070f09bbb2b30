"""The keys that NeMo-RL reads without a default, found in a checkout's sources with `ast`.

The sources are followed from the driver's `main`, with the recipe as a symbol instead of a value: calls into
the checkout are entered, branches become conditions on the recipe, and each subscript of it is a read.
Nothing of the checkout is imported or executed.
"""

from recipes.reads.description import Read, Reads
from recipes.reads.evaluate import MissingKey, missing_keys
from recipes.reads.reads_cache import Found, find_reads

__all__ = ["Found", "MissingKey", "Read", "Reads", "find_reads", "missing_keys"]

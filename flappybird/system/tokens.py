"""How many tokens a text is, by a tokenizer that needs no download."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module, resources, util
from pathlib import Path

from flappybird.errors import ConfigError, show
from flappybird.system.install import missing

TOKENIZER = "o200k_base"
"""The encoding that is counted in: that of OpenAI's models since GPT-4o. Others differ by some 10 to 20 %, Qwen's and Llama's
by splitting every digit, which makes numbers longer."""

Count = Callable[[str], int]
"""Returns how many tokens a text is."""


def tokenizer() -> Count:
    """Return what counts in `TOKENIZER`. Raises MissingPart."""
    try:
        encoding = import_module("bpe_openai").get_encoding(TOKENIZER)
    except ImportError:
        raise missing(f"counting tokens in {TOKENIZER} needs bpe-openai", "cost") from None
    return lambda text: len(encoding.encode_ordinary(text))


@lru_cache(maxsize=4)
def tokenizer_of(name: str) -> Count:
    """Return what counts by a `tokenizer.json`.

    Args:
        name: the path of the file, or of one inside an installed package: `PACKAGE/tokenizer.json`.

    Raises:
        ConfigError: there is no such file, or it holds no tokenizer.
        MissingPart: the library `tokenizers` is not installed.
    """
    path = _file(name)
    try:
        library = import_module("tokenizers")
    except ImportError:
        raise missing("reading a tokenizer.json needs tokenizers", "tokenizers") from None
    try:
        found = library.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing more exact
        raise ConfigError(f"--tokenizer = {show(name)}: holds no tokenizer: {show(str(error))}") from None
    found.no_truncation()
    return lambda text: len(found.encode(text, add_special_tokens=False))


def _file(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    package, _, inside = name.partition("/")
    if inside and package.isidentifier() and util.find_spec(package) is not None:
        within = Path(str(resources.files(package))) / inside
        if within.is_file():
            return within
    raise ConfigError(f"--tokenizer = {show(name)}: must be a tokenizer.json, or PACKAGE/tokenizer.json of an installed package")

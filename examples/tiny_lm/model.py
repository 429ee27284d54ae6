"""The model: a Llama in small, written out in JAX, its weights a plain dictionary of arrays.

Two layers of width 128 with four heads: RMSNorm, rotary positions, SwiGLU, no biases, float32, about 0.6 million weights.
All prompts have the same length, padded on the left, so that every reply begins at the same position. That allows for the
two savings that matter on a processor: the last layer is only computed where something is said, and all shapes are known
beforehand (each new one compiles for seconds).
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, Any]


class Shape(NamedTuple):
    """What the weights do not say."""

    vocabulary: int
    prompt: int
    """Tokens of a prompt, padding included."""
    reply: int
    """Tokens of a reply, its end included, at the most."""
    width: int = 128
    hidden: int = 256
    layers: int = 2
    heads: int = 4


def init(shape: Shape, seed: int) -> Weights:
    """Return untrained weights."""
    keys = iter(jax.random.split(jax.random.key(seed), 2 + 5 * shape.layers))

    def matrix(rows: int, columns: int, scale: float = 1.0) -> jax.Array:
        return jax.random.normal(next(keys), (rows, columns)) * scale / rows**0.5

    width, hidden = shape.width, shape.hidden
    return {
        "embed": matrix(shape.vocabulary, width, shape.vocabulary**0.5 * 0.02),
        "head": matrix(width, shape.vocabulary, 0.2),
        "norm": jnp.ones(width),
        "layers": [
            {
                "norm1": jnp.ones(width),
                "qkv": matrix(width, 3 * width),
                "out": matrix(width, width, 0.4),
                "norm2": jnp.ones(width),
                "up": matrix(width, 2 * hidden),
                "down": matrix(hidden, width, 0.4),
            }
            for _ in range(shape.layers)
        ],
    }


# --- the forward pass ---------------------------------------------------------------------------------------------


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Turn pairs of features of x (batch, positions, heads, features) by angles that grow with the position."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * (1000.0 ** (-jnp.arange(half) / half))
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _keys_and_queries(layer: Weights, x: jax.Array, positions: jax.Array, heads: int) -> tuple[jax.Array, ...]:
    """Return queries, keys and values, each (batch, positions, heads, features)."""
    split = (_norm(x, layer["norm1"]) @ layer["qkv"]).reshape(*x.shape[:2], 3, heads, -1)
    return _rotate(split[:, :, 0], positions), _rotate(split[:, :, 1], positions), split[:, :, 2]


def _attend(layer: Weights, x: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    """Return x after attention and feed-forward; `mask` (batch, queries, keys) is True where a query may look."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(mask[:, None], scores, -1e9), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ layer["out"]
    gate, up = jnp.split(_norm(x, layer["norm2"]) @ layer["up"], 2, axis=-1)
    return x + (jax.nn.silu(gate) * up) @ layer["down"]


def reply_logits(weights: Weights, shape: Shape, prompts: jax.Array, replies: jax.Array) -> jax.Array:
    """Return what the model expects at each token of the replies: (batch, longest reply, vocabulary).

    Args:
        prompts: (batch, longest prompt), padded on the left with 0.
        replies: (batch, longest reply), padded on the right.
    """
    said = jnp.concatenate([prompts, replies[:, :-1]], axis=1).astype(jnp.int32)
    length, first = said.shape[1], shape.prompt - 1  # the last token of the prompt expects the first one of the reply
    positions = jnp.arange(length)
    real = (said != 0) | (positions >= shape.prompt)
    mask = (positions[None, :] <= positions[:, None]) & real[:, None, :]
    x = weights["embed"][said]
    for layer in weights["layers"][:-1]:
        x = _attend(layer, x, *_keys_and_queries(layer, x, positions, shape.heads), mask)
    layer = weights["layers"][-1]
    q, k, v = _keys_and_queries(layer, x, positions, shape.heads)
    x = _attend(layer, x[:, first:], q[:, first:], k, v, mask[:, first:])
    return _norm(x, weights["norm"]) @ weights["head"]


def log_probabilities(weights: Weights, shape: Shape, prompts: jax.Array, replies: jax.Array) -> jax.Array:
    """Return the log probability of each token of the replies, 0 at padding: (batch, longest reply)."""
    logits = jax.nn.log_softmax(reply_logits(weights, shape, prompts, replies))
    replies = replies.astype(jnp.int32)
    return jnp.where(replies != 0, jnp.take_along_axis(logits, replies[..., None], axis=-1)[..., 0], 0.0)


# --- answering ----------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames=("shape", "end", "longest"))
def answer(
    weights: Weights, shape: Shape, end: int, longest: int, prompts: jax.Array, temperature: jax.Array, seed: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return replies and the log probability of each of their tokens, both (batch, longest), padded with 0, and what the
    model made of the prompt before it said anything: (batch, width).

    Args:
        end: the token that ends a reply.
        longest: tokens after which a reply is cut.
        prompts: (batch, longest prompt), padded on the left with 0.
        temperature: (batch,), 0 for the likeliest token.
        seed: of the sampling.
    """
    batch = prompts.shape[0]
    positions = jnp.arange(shape.prompt + longest)
    real = jnp.concatenate([prompts != 0, jnp.ones((batch, longest), bool)], axis=1)

    def layers(x: jax.Array, at: jax.Array, cache: list[Any], start: Any) -> tuple[jax.Array, list[Any]]:
        mask = (positions[None, :] <= at[:, None]) & real[:, None, :]
        kept = []
        for layer, (keys, values) in zip(weights["layers"], cache, strict=True):
            q, k, v = _keys_and_queries(layer, x, at, shape.heads)
            keys = jax.lax.dynamic_update_slice_in_dim(keys, k, start, 1)
            values = jax.lax.dynamic_update_slice_in_dim(values, v, start, 1)
            kept.append((keys, values))
            if layer is weights["layers"][-1]:
                x, q, mask = x[:, -1:], q[:, -1:], mask[:, -1:]
            x = _attend(layer, x, q, keys, values, mask)
        return _norm(x[:, -1], weights["norm"]), kept

    def choose(logits: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits = logits.at[:, 0].set(-1e9)  # padding is nothing that can be said
        drawn = jax.random.categorical(key, logits / jnp.maximum(temperature, 1e-6)[:, None])
        token = jnp.where(temperature > 0, drawn, jnp.argmax(logits, axis=-1))
        return token, jnp.take_along_axis(jax.nn.log_softmax(logits), token[:, None], axis=-1)[:, 0]

    empty = jnp.zeros((batch, shape.prompt + longest, shape.heads, shape.width // shape.heads))
    cache = [(empty, empty) for _ in weights["layers"]]
    hidden, cache = layers(weights["embed"][prompts.astype(jnp.int32)], positions[: shape.prompt], cache, 0)

    def going_on(state: Any) -> Any:
        step, _, _, done, _, _ = state
        return (step < longest) & ~done.all()

    def one_more(state: Any) -> Any:
        step, now, cache, done, said, chances = state
        token, chance = choose(now @ weights["head"], jax.random.fold_in(jax.random.key(seed), step))
        said = said.at[:, step].set(jnp.where(done, 0, token))
        chances = chances.at[:, step].set(jnp.where(done, 0.0, chance))
        at = (shape.prompt + step)[None]
        now, cache = layers(weights["embed"][token][:, None], at, cache, at[0])
        return step + 1, now, cache, done | (token == end), said, chances

    nothing = jnp.zeros((batch, longest), jnp.int32), jnp.zeros((batch, longest))
    state = (jnp.int32(0), hidden, cache, jnp.zeros(batch, bool), *nothing)
    *_, said, chances = jax.lax.while_loop(going_on, one_more, state)
    return said, chances, hidden


# --- files --------------------------------------------------------------------------------------------------------


def save(path: Path, shape: Shape, tree: Any, **facts: Any) -> None:
    """Write weights (or any tree of arrays) to `path`, whole or not at all."""
    temporary = path.with_name(f"{path.name}.part")
    with open(temporary, "wb") as file:
        leaves = {str(number): np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
        np.savez(file, **leaves, facts=np.array(json.dumps({"shape": shape, **facts})))
    temporary.replace(path)


def load(path: Path) -> tuple[Shape, Weights, dict[str, Any]]:
    """Return shape, weights and facts of a checkpoint."""
    with np.load(path) as arrays:
        shape = Shape(*json.loads(str(arrays["facts"]))["shape"])
    weights, facts = load_tree(path, jax.eval_shape(lambda: init(shape, 0)))
    return shape, weights, facts


def load_tree(path: Path, like: Any) -> tuple[Any, dict[str, Any]]:
    """Return a tree of arrays that `save` wrote, built like another one, and its facts."""
    with np.load(path) as arrays:
        facts = json.loads(str(arrays["facts"]))
        structure = jax.tree.structure(like)
        leaves = [jnp.asarray(arrays[str(number)]) for number in range(structure.num_leaves)]
    return jax.tree.unflatten(structure, leaves), facts

"""Random bits: the cipher agrees with its paper, and counters and keys are as documented, on all backends."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import FUSED, STACKS, Required, array
from tensorken.random.bits import Purpose, blocks, counter_of
from tensorken_core.errors import ArgumentError, DTypeError, ScalarRangeError, ShapeError
from tensorken_core.language.op import OPS
from tensorken_core.tensor.dispatch import apply
from tensorken_numpy.backend import Numpy

BACKENDS: dict[str, Any] = {**STACKS, "reference": "reference"}
ON_EACH = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
CIPHER = OPS["threefry2x32"]
WORD = 1 << 32


def signed(words: Any) -> np.ndarray[Any, Any]:
    return np.array(words, np.uint32).view(np.int32)


def unsigned(x: Any) -> np.ndarray[Any, Any]:
    return array(x).view(np.uint32)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """The cipher on Python ints, written from its paper."""
    parts = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = [(word + part) % WORD for word, part in zip(counter, parts, strict=False)]
    for number in range(20):
        places = (13, 15, 26, 6, 17, 29, 16, 24)[number % 8]
        x = (x + y) % WORD
        y = ((y << places | y >> (32 - places)) % WORD) ^ x
        if number % 4 == 3:
            turn = number // 4 + 1
            x, y = (x + parts[turn % 3]) % WORD, (y + parts[(turn + 1) % 3] + turn) % WORD
    return x, y


# The known answers of Random123: key, counter, result.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@ON_EACH
def test_the_cipher_gives_the_known_answers(backend: Any) -> None:
    keys, counters, answers = zip(*KNOWN, strict=True)
    operands = [tk.tensor(signed(words), backend=backend) for words in (keys, counters)]
    assert unsigned(apply(CIPHER, operands)).tolist() == [list(answer) for answer in answers]
    assert [threefry(key, counter) for key, counter, _ in KNOWN] == list(answers)


@pytest.mark.parametrize("shape", [(2,), (0, 2), (3, 2), (2, 3, 2), (2**15 + 3, 2)])
def test_numpys_cipher_has_the_bits_of_the_body(shape: tuple[int, ...]) -> None:
    """Also for keys with strides of 0 or negative strides; the operands are not changed."""
    generator, required = np.random.default_rng(len(shape)), Required()
    counters, keys = (generator.integers(-(2**31), 2**31, shape, np.int32) for _ in range(2))
    one = np.broadcast_to(np.array([3, -4], np.int32), shape)
    for key, counter in itertools.product((keys, keys[..., ::-1], one), (counters, counters[::-1])):
        before = np.array(counter)
        found = Numpy().threefry2x32(key, counter)
        body = apply(CIPHER, [tk.tensor(np.array(x, order="C"), backend=required) for x in (key, counter)])
        assert found.dtype == np.int32
        assert np.array_equal(found, array(body))
        assert np.array_equal(counter, before)
        rows = [unsigned(x).reshape(-1, 2)[:5].tolist() for x in (key, counter, found)]
        assert [list(threefry(tuple(k), tuple(c))) for k, c in zip(*rows[:2], strict=True)] == rows[2]


def test_a_repeated_leading_axis_of_keys_is_computed_once() -> None:
    """As vmap gives them: a key for each example, the same for all counters, and the other way round."""
    generator = np.random.default_rng(5)
    keys, counters = (generator.integers(-(2**31), 2**31, (4, 2), np.int32) for _ in range(2))
    for key, counter in ((keys[:, None], counters[None, :]), (keys[None, :], counters[:, None])):
        key, counter = (np.broadcast_to(x, (4, 4, 2)) for x in (key, counter))
        expected = Numpy().threefry2x32(np.array(key), np.array(counter))
        assert np.array_equal(Numpy().threefry2x32(key, counter), expected)


def test_the_cipher_refuses_operands_that_are_not_pairs_of_words() -> None:
    x = tk.zeros((3,), "int32", backend=FUSED)
    with pytest.raises(ShapeError, match=r"^threefry2x32: got shape \(3,\); the last axis must have size 2"):
        apply(CIPHER, [x, x])
    with pytest.raises(DTypeError, match=r"^threefry2x32: not defined for int64; it takes int32; cast first"):
        apply(CIPHER, [tk.zeros((2,), "int64", backend=FUSED)] * 2)


# ---- counters ----------------------------------------------------------------------------------------------


def test_counters_carry_and_keep_purposes_apart() -> None:
    assert counter_of(5, Purpose.BITS) == (0, 5)
    assert counter_of(2**31, Purpose.BITS) == (0, -(2**31))
    assert counter_of(2**32 + 7, Purpose.BITS) == (1, 7)
    assert counter_of(2**40 - 1, Purpose.SPLIT) == (2**30 + 255, -1)
    assert counter_of(1, Purpose.FOLD_IN) == (-(2**31), 1)


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("count", [0, 1, 2, 1023, 1024, 1025, 5000, 65_537])
def test_blocks_are_the_ciphers_of_their_numbers(count: int, purpose: Purpose) -> None:
    key = tk.random.key(77, backend=FUSED)
    found = unsigned(blocks(key, count, purpose))
    assert found.shape == (count, 2)
    for i in {0, 1, 31, 32, 511, 512, 1023, 1024, 1025, 4999, 65_535, 65_536, count - 1} & set(range(count)):
        counter = (i // WORD + purpose * 2**30, i % WORD)
        assert tuple(found[i].tolist()) == threefry((0, 77), counter), i


def test_blocks_beyond_32_bits_of_numbers_have_rows_of_their_own() -> None:
    """This many bits do not fit in memory, but their counters are rows of sums, without a carry within a row."""
    count = 2**33 + 5
    width = 1 << (count.bit_length() // 2)
    assert 2**32 % width == 0
    last = -(-count // width) - 1
    assert counter_of(last * width, Purpose.BITS) == (2, 0)
    assert counter_of((2**32 // width) * width - width, Purpose.BITS) == (0, -width)


# ---- bits --------------------------------------------------------------------------------------------------


@ON_EACH
def test_bits_are_the_words_of_blocks_in_order(backend: Any) -> None:
    key = tk.random.key(2**40 + 3, backend=backend)
    pairs = [threefry((256, 3), (0, i)) for i in range(3)]
    flat = [word for pair in pairs for word in pair]
    assert unsigned(tk.random.bits(key, (5,))).tolist() == flat[:5]
    assert unsigned(tk.random.bits(key, (2, 3))).ravel().tolist() == flat
    assert unsigned(tk.random.bits(key)).tolist() == flat[0]
    wide = array(tk.random.bits(key, 3, "int64"))
    assert wide.view(np.uint64).tolist() == [high * WORD + low for high, low in pairs]
    assert wide.dtype == np.int64


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (7,), (2, 3, 4)])
def test_bits_have_the_requested_shape_and_dtype(shape: tuple[int, ...], dtype: str) -> None:
    x = tk.random.bits(tk.random.key(0, backend=FUSED), shape, dtype)
    assert (x.shape, str(x.dtype)) == (shape, dtype)
    assert (array(x).shape, str(array(x).dtype)) == (shape, dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_first_of_many_are_the_first_of_few(dtype: str) -> None:
    key = tk.random.key(3, backend=FUSED)
    many = tk.random.bits(key, (3001,), dtype).tolist()
    for count in (1, 2, 3, 1000, 2048, 2050):
        assert tk.random.bits(key, (count,), dtype).tolist() == many[:count]
    keys = tk.random.split(key, 3001).tolist()
    assert tk.random.split(key, 5).tolist() == keys[:5]


# ---- keys --------------------------------------------------------------------------------------------------


SEEDS = [
    (0, (0, 0)),
    (5, (0, 5)),
    (-1, (-1, -1)),
    (2**31, (0, -(2**31))),
    (2**32, (1, 0)),
    (2**63, (-(2**31), 0)),
    (2**64 - 1, (-1, -1)),
    (-(2**63), (-(2**31), 0)),
    (-(2**31), (-1, -(2**31))),
    (np.int64(7), (0, 7)),
    (np.uint64(2**64 - 2), (-1, -2)),
]


@pytest.mark.parametrize(("seed", "words"), SEEDS)
def test_a_seed_is_split_into_its_halves(seed: Any, words: tuple[int, int]) -> None:
    key = tk.random.key(seed, backend=FUSED)
    assert (key.tolist(), key.dtype, key.shape) == (list(words), tk.int32, (2,))
    value = (int(seed) + 2**63) % 2**64 - 2**63
    wide = tk.tensor(value, "int64", backend=FUSED)
    assert tk.random.key(wide).tolist() == list(words)
    if -(2**31) <= value < 2**31:
        assert tk.random.key(wide.astype("int32")).tolist() == list(words)


def test_a_key_lives_where_it_is_made() -> None:
    assert tk.random.key(1, backend="reference").backend == "reference"
    seed = tk.tensor(1, backend="reference")
    assert tk.random.key(seed).backend == "reference"
    assert tk.random.key(seed, backend="numpy").backend == "numpy"
    assert tk.random.uniform(tk.random.key(1, backend="reference"), (2,)).backend == "reference"


def test_seeds_under_vmap() -> None:
    seeds = tk.tensor([-3, 0, 12], "int64", backend=FUSED)
    expected = [tk.random.key(seed, backend=FUSED).tolist() for seed in (-3, 0, 12)]
    assert tk.vmap(tk.random.key)(seeds).tolist() == expected
    assert tk.vmap(tk.random.key)(seeds.astype("int32")).tolist() == expected


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 10**40])
def test_a_seed_beyond_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(
        ScalarRangeError, match=r"^key: the seed must be from -2\*\*63 to 2\*\*64 - 1, got .*modulo"
    ):
        tk.random.key(seed)


@pytest.mark.parametrize("seed", [1.0, "1", None, [1]])
def test_a_seed_that_is_not_an_integer_is_refused(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^key: the seed must be an int, got "):
        tk.random.key(seed)


def test_a_tensor_that_is_not_a_seed_is_refused() -> None:
    with pytest.raises(DTypeError, match=r"^key: the seed must be int32 or int64, got float32"):
        tk.random.key(tk.tensor(1.0, backend=FUSED))
    with pytest.raises(ShapeError, match=r"^key: the seed must have shape \(\), got \(2,\); use tk.vmap"):
        tk.random.key(tk.tensor([1, 2], backend=FUSED))


@ON_EACH
def test_keys_of_a_key_are_blocks_of_their_purpose(backend: Any) -> None:
    key = tk.random.key(9, backend=backend)
    expected = [list(threefry((0, 9), (2**30, i))) for i in range(6)]
    assert unsigned(tk.random.split(key)).tolist() == expected[:2]
    assert unsigned(tk.random.split(key, 6)).tolist() == expected
    assert unsigned(tk.random.split(key, (2, 3))).reshape(6, 2).tolist() == expected
    assert tk.random.split(key, 0).shape == (0, 2)
    for data, word in ((0, 0), (1, 1), (-1, WORD - 1), (WORD - 1, WORD - 1), (2**31, 2**31)):
        answer = list(threefry((0, 9), (2**31, word)))
        assert unsigned(tk.random.fold_in(key, data)).tolist() == answer
        if data < 2**31:
            assert unsigned(tk.random.fold_in(key, tk.tensor(data, backend=backend))).tolist() == answer


def test_a_key_unpacks() -> None:
    one, other = tk.random.split(tk.random.key(0, backend=FUSED))
    assert one.shape == other.shape == (2,)
    assert one.tolist() != other.tolist()


def test_many_keys_are_all_different() -> None:
    """Keys of two generations of splits, keys with folded-in steps, and the blocks of random bits."""
    key = tk.random.key(0, backend=FUSED)
    children = tk.random.split(key, 3000)
    found = [
        children,
        tk.vmap(lambda k: tk.random.split(k, 5))(children[:1000]).reshape((5000, 2)),
        tk.vmap(tk.random.fold_in, in_axes=(None, 0))(key, tk.arange(3000, backend=FUSED)),
        tk.random.bits(key, (3000, 2)),
        tk.random.bits(tk.random.key(1, backend=FUSED), (3000, 2)),
    ]
    rows = np.concatenate([array(x) for x in found])
    assert len(np.unique(rows, axis=0)) == len(rows) == 17_000


def test_one_bit_of_the_seed_changes_half_of_the_bits() -> None:
    base = unsigned(tk.random.bits(tk.random.key(0, backend=FUSED), (1000,)))
    for place in range(64):
        other = unsigned(tk.random.bits(tk.random.key(1 << place, backend=FUSED), (1000,)))
        share = np.unpackbits((base ^ other).view(np.uint8)).mean()
        assert abs(share - 0.5) < 5 * 0.5 / 32_000**0.5, place


# ---- arguments ---------------------------------------------------------------------------------------------


DRAWS = {
    "split": tk.random.split,
    "fold_in": lambda key: tk.random.fold_in(key, 1),
    "bits": tk.random.bits,
    "uniform": tk.random.uniform,
    "normal": tk.random.normal,
    "truncated_normal": lambda key: tk.random.truncated_normal(key, -1.0, 1.0),
    "exponential": tk.random.exponential,
    "gumbel": tk.random.gumbel,
    "bernoulli": tk.random.bernoulli,
    "randint": lambda key: tk.random.randint(key, (), 0, 3),
    "permutation": lambda key: tk.random.permutation(key, 3),
    "choice": lambda key: tk.random.choice(key, 3),
    "categorical": lambda key: tk.random.categorical(key, [0.0, 1.0]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_operands_that_are_not_keys_are_refused(name: str) -> None:
    for wrong in (0, None, [0, 1], random.Random(0)):
        with pytest.raises(
            ArgumentError, match=rf"^{name}: need a key, got .*; make one with tk.random.key\(seed\)"
        ):
            DRAWS[name](wrong)
    for shape, dtype in (((3,), "int32"), ((), "int32"), ((2,), "int64"), ((2,), "float32")):
        with pytest.raises(
            ArgumentError, match=rf"^{name}: need a key, int32 of shape \(2,\), got {dtype} of shape"
        ):
            DRAWS[name](tk.zeros(shape, dtype, backend=FUSED))
    with pytest.raises(
        ShapeError, match=rf"^{name}: need one key, of shape \(2,\), got shape \(4, 2\); .*tk.vmap"
    ):
        DRAWS[name](tk.random.split(tk.random.key(0, backend=FUSED), 4))


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gumbel", "split"])
def test_invalid_shapes_are_refused(name: str) -> None:
    draw, key = getattr(tk.random, name), tk.random.key(0, backend=FUSED)
    with pytest.raises(ShapeError, match=rf"^{name}: sizes must not be negative, got \(2, -1\)"):
        draw(key, (2, -1))
    with pytest.raises(ArgumentError, match=rf"^{name}: the sizes of a shape must be ints, got "):
        draw(key, (2, 1.5))


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gumbel"])
def test_dtypes_of_another_kind_are_refused(name: str) -> None:
    draw, key = getattr(tk.random, name), tk.random.key(0, backend=FUSED)
    wrong = ["bool", "float32"] if name == "bits" else ["bool", "int32", "int64"]
    takes = "an integer dtype" if name == "bits" else "a floating-point dtype"
    for dtype in wrong:
        with pytest.raises(
            DTypeError, match=rf"^{name}: the dtype must be {takes}, got {dtype}; cast the result"
        ):
            draw(key, (2,), dtype)
    with pytest.raises(DTypeError, match="is unknown"):
        draw(key, (2,), "float8")


def test_invalid_data_of_fold_in_are_refused() -> None:
    key = tk.random.key(0, backend=FUSED)
    with pytest.raises(ArgumentError, match=r"^fold_in: data must be an int, got 1\.0"):
        tk.random.fold_in(key, 1.0)
    for data in (-(2**31) - 1, 2**32):
        with pytest.raises(
            ScalarRangeError, match=rf"^fold_in: data must be from -2\*\*31 to 2\*\*32 - 1, got {data}"
        ):
            tk.random.fold_in(key, data)
    for wrong in (tk.zeros((2,), "int32", backend=FUSED), tk.zeros((), "int64", backend=FUSED)):
        with pytest.raises(ArgumentError, match=r"^fold_in: data must be int32 of shape \(\), got "):
            tk.random.fold_in(key, wrong)


def test_nothing_else_is_touched() -> None:
    """Neither Python's generator nor numpy's, nor the key."""
    key = tk.random.key(0, backend=FUSED)
    python, numpy = random.getstate(), np.random.get_state()
    for name, draw in DRAWS.items():
        first, second = draw(key).tolist(), draw(key).tolist()
        assert first == second, name
    assert key.tolist() == [0, 0]
    assert random.getstate() == python
    after = np.random.get_state()
    assert all(np.array_equal(a, b) for a, b in zip(numpy, after, strict=True))

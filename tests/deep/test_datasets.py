"""Files of MNIST's and CIFAR's formats, made small: read whole, and refused in a sentence where broken."""

import gzip
import pickle

import numpy as np
import pytest

from deep import torch
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.datasets import cifar10, cifar100, idx, mnist
from sfumato.learn.torch.runs import private


def _idx(array, kind=8):
    header = bytes([0, 0, kind, array.ndim]) + b"".join(each.to_bytes(4, "big") for each in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def pictures(tmp_path):
    draw = np.random.default_rng(1)
    images, labels = draw.integers(0, 256, (6, 5, 4)), draw.integers(0, 10, 6)
    (tmp_path / "images").write_bytes(_idx(images))
    (tmp_path / "labels.gz").write_bytes(gzip.compress(_idx(labels)))
    return tmp_path, images, labels


def test_mnist_is_read_zipped_or_not(pictures):
    folder, images, labels = pictures
    x, y = mnist(folder / "images", folder / "labels.gz")
    assert x.shape == (6, 1, 5, 4)
    assert x.dtype == torch.float32
    assert np.array_equal((x[:, 0] * 255).round().numpy(), images)
    assert y.dtype == torch.int64
    assert y.tolist() == labels.tolist()


def _cifar(tmp_path, name, before, count=4, seed=1):
    draw = np.random.default_rng(seed)
    held = draw.integers(0, 256, (count, before + 3072)).astype(np.uint8)
    held[:, :before] %= 10
    (tmp_path / name).write_bytes(held.tobytes())
    return held


def test_cifar_is_read_from_one_file_or_several(tmp_path):
    first, second = _cifar(tmp_path, "one.bin", 1), _cifar(tmp_path, "two.bin", 1, seed=2)
    x, y = cifar10(tmp_path / "one.bin", tmp_path / "two.bin")
    assert x.shape == (8, 3, 32, 32)
    assert y.tolist() == [*first[:, 0], *second[:, 0]]
    assert np.array_equal((x[5] * 255).round().numpy().ravel(), second[1, 1:])
    assert float(x[0, 0, 0, 1] * 255) == pytest.approx(first[0, 2]), "along a row"
    held = _cifar(tmp_path, "many.bin", 2)
    assert cifar100(tmp_path / "many.bin")[1].tolist() == held[:, 1].tolist()
    assert cifar100(tmp_path / "many.bin", coarse=True)[1].tolist() == held[:, 0].tolist()
    assert np.array_equal((cifar100(tmp_path / "many.bin")[0][2] * 255).round().numpy().ravel(), held[2, 2:])


def test_zipped_cifar_is_known_by_its_name(tmp_path):
    held = _cifar(tmp_path, "one.bin", 1)
    (tmp_path / "one.bin.gz").write_bytes(gzip.compress(held.tobytes()))
    assert cifar10(tmp_path / "one.bin.gz")[1].tolist() == held[:, 0].tolist()


@pytest.mark.parametrize("label", [0x1F, 0x80, 255])
def test_no_record_makes_a_file_unreadable(tmp_path, label):
    held = _cifar(tmp_path, "one.bin", 1)
    held[0, :2] = label, 0x8B
    (tmp_path / "one.bin").write_bytes(held.tobytes())
    x, y = cifar10(tmp_path / "one.bin")
    assert y[0] == label
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10))
    private(model, torch.optim.SGD(model.parameters(), 0.1), (x, y), epsilon=1, delta=1e-3, size=4, batch=4,
            steps=1).fit()  # fmt: skip
    assert all(torch.isfinite(each).all() for each in model.parameters())


class _Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


BROKEN = {
    "empty": (b"", "no IDX file"),
    "text": (b"label,pixel\n1,2\n", "no IDX file"),
    "too many axes": (bytes([0, 0, 8, 9]), "no IDX file"),
    "floats": (_idx(np.zeros((2, 2, 2)), kind=0x0D), "does not hold bytes"),
    "cut in the header": (_idx(np.zeros((2, 2, 2)))[:9], "ends within its header"),
    "cut": (_idx(np.zeros((2, 2, 2)))[:-1], "not as long as its header says"),
    "longer": (_idx(np.zeros((2, 2, 2))) + b"\0", "not as long as its header says"),
    "cut while zipped": (gzip.compress(_idx(np.zeros((20, 9, 9))))[:-9], "cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_a_sentence(name, tmp_path):
    held, words = BROKEN[name]
    (tmp_path / "images").write_bytes(held)
    with pytest.raises(InvalidParameter, match=words) as refused:
        idx(tmp_path / "images")
    assert str(refused.value).startswith("images ")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_files_that_do_not_fit_are_refused(pictures, tmp_path):
    folder, _images, labels = pictures
    with pytest.raises(InvalidParameter, match="three axes"):
        mnist(folder / "labels.gz", folder / "images")
    (folder / "fewer").write_bytes(_idx(labels[:5]))
    with pytest.raises(InvalidParameter, match="not of one set"):
        mnist(folder / "images", folder / "fewer")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        mnist(folder / "none", folder / "images")
    with pytest.raises(InvalidParameter, match="at least one file"):
        cifar10()


def test_pickles_are_never_read(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": _Harmful(), b"labels": [1]}))
    for read in (cifar10, cifar100):
        with pytest.raises(InvalidParameter, match="pickle, which may run any code"):
            read(tmp_path / "data_batch_1")

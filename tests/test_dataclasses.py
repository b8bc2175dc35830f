"""Our dataclasses against those of the standard library: all kinds of fields, all options in use."""

import copy
import dataclasses
import inspect
import itertools
from dataclasses import FrozenInstanceError, field

import pytest

from sfumato._dataclasses import dataclass

KINDS = {
    "bare": lambda: ...,
    "default": lambda: 3,
    "factory": lambda: field(default_factory=lambda: (1, 2)),
    "not compared": lambda: field(compare=False, default=4),
    "not shown": lambda: field(repr=False, default=5),
    "not hashed": lambda: field(hash=False, default=6),
    "not an argument": lambda: field(init=False, default=7),
    "made, not an argument": lambda: field(init=False, default_factory=lambda: (8,)),
    "by keyword": lambda: field(kw_only=True),
    "by keyword, with a default": lambda: field(kw_only=True, default="k"),
}
OPTIONS = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"frozen": True, "slots": True, "init": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "weakref_slot": True, "eq": False},
    {"frozen": True},
    {"slots": True},
    {},
]
NAMES = ("__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__")
LISTS = [(), *((kind,) for kind in KINDS), *itertools.pairwise(KINDS), tuple(KINDS)]


def _twins(kinds, options, *, bases=(object, object), body=()):
    """The same class, made by the standard decorator and by ours."""
    made = []
    for decorate, base in zip((dataclasses.dataclass, dataclass), bases, strict=True):
        names = [f"f{list(KINDS).index(kind)}" for kind in kinds]
        space = {
            name: value
            for name, kind in zip(names, kinds, strict=True)
            if (value := KINDS[kind]()) is not ...
        }
        space |= {
            "__annotations__": dict.fromkeys(names, "object"),
            "__doc__": "A value.",
            "__module__": __name__,
        }
        made.append(decorate(**options)(type("Value", (base,), space | dict(body))))
    return made


def _outcome(act, *arguments):
    """What an act gives, or the error that it ends with, so that both twins can be compared."""
    try:
        return act(*arguments)
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def _seen(cls, arguments, named):
    """All that can be seen of a class and of an object of it."""
    params = cls.__dataclass_params__
    seen = {
        "fields": [
            (each.name, each.type, each.init, each.repr, each.compare, each.kw_only)
            for each in dataclasses.fields(cls)
        ],
        "params": (params.init, params.repr, params.eq, params.order, params.frozen),
        "match": cls.__match_args__,
        "slots": cls.__dict__.get("__slots__"),
        "signature": str(inspect.signature(cls)),
        "too many": _outcome(cls, *range(20)),
    }
    if not cls.__dataclass_params__.init:
        return seen
    one, other = cls(*arguments, **named), cls(*arguments, **named)
    values = dataclasses.asdict(one)
    names = [*values, *(["unknown"] if seen["slots"] is None else [])]  # the standard guard trips over slots
    shown = repr(one)
    return seen | {
        "values": values,
        "repr": shown if params.repr else shown.split(" at ")[0],
        "equal": (one == other, one != other, one == 1, one.__eq__(1)),
        "hash": (_outcome(hash, one) if params.eq else None, cls.__hash__ is None),
        "set": [_outcome(setattr, other, name, 9) for name in names],
        "deleted": [_outcome(delattr, other, name) for name in names],
        "copied": _outcome(lambda: dataclasses.asdict(copy.copy(one))),
    }


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_our_dataclass_is_the_standard_one(options):
    compared = 0
    for kinds in LISTS:
        try:
            standard, ours = _twins(kinds, options)
        except TypeError as error:  # a field with a default before one without: no such class
            assert "non-default argument" in str(error)  # noqa: PT017
            continue
        needed = [
            each
            for each in dataclasses.fields(standard)
            if each.init and each.default is each.default_factory is dataclasses.MISSING
        ]
        arguments = tuple(range(sum(not each.kw_only for each in needed)))
        named = {each.name: "n" for each in needed if each.kw_only}
        assert _seen(ours, arguments, named) == _seen(standard, arguments, named), kinds
        compared += 1
    assert compared > len(LISTS) // 2


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_dataclass_may_stand_on_another(options):
    bases = _twins(["bare", "default"], options)
    standard, ours = _twins(["not compared", "not shown"], options, bases=bases)
    given = ((), {"f0": 1}) if options.get("kw_only") else ((1,), {})
    assert _seen(ours, *given) == _seen(standard, *given)
    # and one of the standard library on ours, as a user may write it
    below = dataclasses.dataclass(**options)(type("Value", (bases[1],), {"__doc__": "A value."}))
    assert _seen(below, *given) == _seen(bases[0], *given) | {"slots": () if options.get("slots") else None}


def test_what_a_class_defines_itself_stays():
    body = {
        "__init__": lambda self, double: object.__setattr__(self, "f0", 2 * double),
        "__repr__": lambda self: "shown",
        "__eq__": lambda self, other: True,
        "__getstate__": lambda self: [11],
    }
    standard, ours = _twins(["bare"], OPTIONS[0], body=body.items())
    for cls in (standard, ours):
        value = cls(2)
        assert (value.f0, repr(value), value == 1) == (4, "shown", True)
    assert copy.copy(ours(2)).f0 == 11  # Python 3.11.2 and before put their own `__getstate__` in its place
    assert hash(ours(2)) == hash(standard(2))  # an `__eq__` alone does not take the hash away
    body = {"__hash__": lambda self: 17}
    assert [hash(cls(2)) for cls in _twins(["bare"], OPTIONS[0], body=body.items())] == [17, 17]


def test_post_init_runs_after_the_fields_are_set():
    body = {"__post_init__": lambda self: object.__setattr__(self, "f1", self.f1 + self.f0)}
    assert [cls(2).f1 for cls in _twins(["bare", "default"], OPTIONS[0], body=body.items())] == [5, 5]


def test_a_frozen_dataclass_cannot_be_opened_by_its_own_methods():
    with pytest.raises(TypeError, match="leave this to it"):
        dataclass(frozen=True)(type("Value", (), {"__setattr__": object.__setattr__}))


def test_an_attribute_that_is_no_field_is_refused_as_fields_are():
    value = _twins(["bare"], OPTIONS[0])[1](1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        value.other = 2


def test_methods_are_written_on_first_use():
    cls = _twins(["bare"], OPTIONS[0])[1]
    assert not any(inspect.isfunction(cls.__dict__[name]) for name in NAMES)
    assert (cls(1) == cls(1), hash(cls(1)) == hash(cls(1)), repr(cls(1))) == (True, True, "Value(f0=1)")
    for act in (setattr, delattr):
        with pytest.raises(FrozenInstanceError):
            act(cls(1), "f0", *([2] if act is setattr else []))
    assert all(inspect.isfunction(cls.__dict__[name]) for name in NAMES)
    assert cls.__init__.__qualname__ == "Value.__init__"


def test_super_means_the_class_with_slots():
    class Base:
        def plain(self):
            return "plain"

        @classmethod
        def of(cls):
            return cls(1)

    @dataclass(frozen=True, slots=True)
    class OfClass(Base):
        x: int

        @classmethod
        def of(cls):
            return super().of()

    @dataclass(frozen=True, slots=True)
    class OfObject(Base):
        x: int

        @property
        def shown(self):
            return super().plain()

        def plain(self):
            return super().plain() * 2

    assert OfClass.of() == OfClass(1)
    assert (OfObject(1).shown, OfObject(1).plain()) == ("plain", "plainplain")


def test_a_plain_subclass_of_a_frozen_dataclass_guards_the_fields_alone():
    class Below(_twins(["bare"], {"frozen": True})[1]):
        pass

    value = Below(1)
    value.other = 2
    del value.other
    with pytest.raises(FrozenInstanceError):
        value.f0 = 3
    with pytest.raises(FrozenInstanceError):
        del value.f0


def test_a_value_that_holds_itself_can_be_shown():
    value = _twins(["bare"], {})[1]([])
    value.f0.append(value)
    assert repr(value) == "Value(f0=[...])"

"""The object `params`: the workflow's parameters and the functions that the engine answers."""

from kapelle.processors.sel.errors import ExtensionFailed, TypeMismatch
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.members.member import STRING, TEXT_OR_LONG, Accept, Member, Table, member
from kapelle.processors.sel.values import box, kind_of


class Params:
    """What the name `params` stands for. It has no state: everything is asked of the frame."""

    __slots__ = ()

    def sel_item(self, frame: Frame, name: str) -> Value:
        """`params['name']`."""
        return _get(frame, self, name)


PARAMS = Params()


def _get(frame: Frame, _: Params, name: str) -> Value:
    if frame.host.extension is None:
        return box(frame, frame.inputs.get(name))
    return box(frame, frame.host.extension.get(name))


def _contains(frame: Frame, _: Params, name: str) -> bool:
    if frame.host.extension is None:
        return name in frame.inputs
    return frame.host.extension.contains(name)


def _asking(function: str) -> Member:
    def ask(frame: Frame, _: Params, *args: Value) -> Value:
        signature = EXTENSION_FUNCTIONS[function].get(len(args))
        if signature is None:
            counts = " or ".join(str(n) for n in sorted(EXTENSION_FUNCTIONS[function]))
            raise TypeMismatch(f"Expected {function}() to be given {counts} arguments, but found {len(args)}")
        for number, (arg, types) in enumerate(zip(args, signature, strict=True), start=1):
            if types is not None and arg.__class__ not in types:
                raise TypeMismatch(f"Expected STRING as argument {number} of {function}(), but found {kind_of(arg)}")
        if frame.host.extension is None:
            raise ExtensionFailed(f"Expected an engine that answers params.{function}(), but none is connected")
        frame.work(100)
        return box(frame, frame.host.extension.call(function, args))

    return Member(ask, {}, variadic=True)


EXTENSION_FUNCTIONS: dict[str, dict[int, tuple[Accept, ...]]] = {
    "getFromStep": {1: (STRING,), 2: (STRING, STRING)},
    "getFromInstance": {1: (STRING,)},
    "getFromSignal": {1: (STRING,), 2: (STRING, STRING)},
    "getFromSignalOrDefault": {2: (STRING, None), 3: (STRING, STRING, None)},
    "getFromSignalDependency": {2: (TEXT_OR_LONG, STRING)},
    "getFromForeach": {3: (STRING, STRING, STRING)},
    "getFromSubworkflow": {3: (STRING, STRING, STRING)},
    "nextUniqueId": {0: ()},
    "getExecutionEnvironment": {0: ()},
}
METHODS: Table = {
    "get": member(_get, (STRING,)),
    "containsKey": member(_contains, (STRING,)),
    **{name: _asking(name) for name in EXTENSION_FUNCTIONS},
}

"""The form of a file of sources. It is checked as a whole, so that all errors are reported at once.

registry: http://127.0.0.1:8081
sources:
  - topic: shop.orders
    name: order-placed
    params: {order: /id, day: /placed/day, region: {value: eu}}
    filter: {/type: placed}
  - topic: shop.payments
    format: avro
    name: {path: kind}
    params: {amount: amount, currency: {path: currency, default: EUR}}
    id: payment_id
    time: paid_at
"""

from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kapelle.processors.definitions.problems import DefinitionRefused
from kapelle.processors.definitions.yaml_text import read_yaml
from kapelle.processors.signals.bounds import NAME_CHARS_MAX, PARAMS_MAX, is_param
from kapelle.relay.addresses import origin_of
from kapelle.sources.errors import BadSources
from kapelle.sources.field_errors import sentence
from kapelle.sources.paths import NOTHING, Path

SOURCES_MAX: Final = 1_000
CHOICES_MAX: Final = 100
SECRET_CHARS_MIN: Final = 16
HOOK: Final = r"^[A-Za-z0-9._-]{1,100}$"
ARN: Final = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]+:[A-Za-z0-9._-]+$"
TOPIC: Final = r"^[A-Za-z0-9._-]{1,249}$"


class Term(msgspec.Struct, frozen=True):
    """How a value is come by: by a path, by a path with something in place of nothing, or as it is written."""

    path: Path | None = None
    value: str | int | None = None

    def of(self, document: object) -> object:
        """The value, or `NOTHING`. A null is nothing too: no parameter can hold it."""
        value = self.value if self.path is None else self.path.find(document)
        if value is None or value is NOTHING:
            return NOTHING if self.value is None else self.value
        return value


def _param(raw: object) -> Term:
    """A parameter: a path, `{path: …, default: …}` or `{value: …}`."""
    if isinstance(raw, dict):
        literals = [raw[key] for key in ("value", "default") if key in raw]
        if raw.keys() in ({"value"}, {"path"}, {"path", "default"}) and all(map(is_param, literals)):
            path = Path.parse(raw["path"]) if "path" in raw else None
            return Term(path, literals[0] if literals else None)
    elif isinstance(raw, str):
        return Term(Path.parse(raw))
    raise ValueError(
        "Expected a path, {path: …, default: …} or {value: …} with a string or an integer of 64 bits, "
        f"but found {str(raw)[:80]!r}"
    )


def _name(raw: object) -> Term:
    """The name of a signal: as it is written, or `{path: …}`."""
    if isinstance(raw, str):
        if not 0 < len(raw) <= NAME_CHARS_MAX:
            raise ValueError(f"Expected a name of 1 to {NAME_CHARS_MAX} characters, but it has {len(raw)}")
        return Term(value=raw)
    if isinstance(raw, dict) and raw.keys() == {"path"}:
        return Term(Path.parse(raw["path"]))
    raise ValueError(f"Expected the name of a signal, or {{path: …}}, but found {str(raw)[:80]!r}")


Choices = tuple[Path, tuple[str | int | bool, ...]]


def _filter(raw: object) -> tuple[Choices, ...]:
    """Values by path; a list of values lets any of them pass."""
    if not isinstance(raw, dict):
        raise ValueError(f"Expected values by path, but found {str(raw)[:80]!r}")
    conditions = []
    for path, allowed in raw.items():
        choices = tuple(allowed) if isinstance(allowed, list) else (allowed,)
        if not 0 < len(choices) <= CHOICES_MAX or not all(isinstance(choice, str | int | bool) for choice in choices):
            raise ValueError(f"Expected a string, an integer, a boolean or a list of them for {path!r}")
        conditions.append((Path.parse(path), choices))
    return tuple(conditions)


def _registry(url: str) -> str:
    """An address over HTTP."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        known = False
    if not known:
        raise ValueError(
            f"Expected the registry as http://host:port or https://host:port, but found {origin_of(url)!r}"
        )
    return url.rstrip("/")


def _named(rules: object) -> object:
    if not isinstance(rules, dict):
        return rules
    return {key: {"name": key} | rule if isinstance(rule, dict) else rule for key, rule in rules.items()}


Param = Annotated[Term, BeforeValidator(_param)]
PathField = Annotated[Path, BeforeValidator(Path.parse)]
HookName = Annotated[str, Field(pattern=HOOK)]
RegistryUrl = Annotated[str, AfterValidator(_registry)]


class Format(StrEnum):
    """How the values of a topic are written."""

    JSON = "json"
    AVRO = "avro"


class Model(BaseModel):
    """What is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Filtered(Model):
    """What is let pass, of all that is read: values by path."""

    filter: Annotated[tuple[Choices, ...], BeforeValidator(_filter)] = ()


class Rule(Filtered):
    """How a document becomes a signal."""

    name: Annotated[Term, BeforeValidator(_name)]
    params: Annotated[dict[str, Param], Field(max_length=PARAMS_MAX)] = {}
    id: PathField | None = None
    time: PathField | None = None
    payload: PathField | None = None


class TopicSource(Rule):
    """A topic whose records become signals."""

    topic: Annotated[str, Field(pattern=TOPIC)]
    format: Format = Format.JSON
    registry: RegistryUrl | None = Field(default=None, repr=False)  # it may hold a password


class HookRule(Rule):
    """A webhook whose bodies become signals. Several secrets are known while one takes the place of another."""

    secrets: list[Annotated[str, Field(min_length=SECRET_CHARS_MIN)]] = Field(default=[], repr=False)


class SnsRule(Rule):
    """An endpoint of Amazon SNS, and the topics that may write to it: anyone can have one that signs as well."""

    topics: Annotated[list[Annotated[str, Field(pattern=ARN)]], Field(min_length=1, max_length=100)]


class SourcesFile(Model):
    """All sources of a deployment. `registry` counts for those that name none of their own."""

    registry: RegistryUrl | None = Field(default=None, repr=False)  # it may hold a password
    sources: Annotated[list[TopicSource], Field(max_length=SOURCES_MAX)] = []
    hooks: Annotated[dict[HookName, HookRule], Field(max_length=SOURCES_MAX)] = {}
    sns: Annotated[dict[HookName, SnsRule], Field(max_length=SOURCES_MAX)] = {}

    @model_validator(mode="before")
    @classmethod
    def _name_signals(cls, raw: object) -> object:
        """A hook that names no signal has the name of its signal."""
        if not isinstance(raw, dict):
            return raw
        return raw | {kind: _named(raw[kind]) for kind in ("hooks", "sns") if kind in raw}

    @model_validator(mode="after")
    def _has_registries(self) -> "SourcesFile":
        lost = [s.topic for s in self.sources if s.format is Format.AVRO and not (s.registry or self.registry)]
        if lost:
            raise ValueError(f"Expected a registry for Avro, but found none for {', '.join(sorted(set(lost)))}")
        return self

    def by_topic(self) -> dict[str, list[TopicSource]]:
        """The sources of each topic: several may read one, each for signals of its own."""
        sources: dict[str, list[TopicSource]] = {}
        for source in self.sources:
            sources.setdefault(source.topic, []).append(source)
        return sources


def read_sources(text: str | bytes) -> SourcesFile:
    """The sources that a YAML or JSON text tells of. Raises `BadSources`."""
    try:
        return SourcesFile.model_validate(read_yaml(text))
    except DefinitionRefused as error:
        raise BadSources([str(problem) for problem in error.problems]) from None
    except ValidationError as error:
        raise BadSources(problems_of(error)) from None


def problems_of(error: ValidationError) -> list[str]:
    """All that is wrong with a file, each with its place. What was found is left out: it may be a secret."""
    return [
        f"{'.'.join(str(part) for part in problem['loc']) or 'the file'}: {sentence(problem, is_secret=True)}"
        for problem in error.errors()
    ]

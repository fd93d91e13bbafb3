"""When no broker answers: ask librdkafka why, because a time-out alone does not help anyone."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kapelle.broker import is_bad_setting, is_refused, says_all_are_down
from kapelle.cli.errors import BadClientSetting, Unreachable
from kapelle.cli.failures import broker_is_away
from kapelle.topology.errors import BrokerRefused, CycleAborted, ProducerLost
from kapelle.topology.kafka.config import KafkaSettings

ASK_S: Final = 1.5
SLICE_S: Final = 0.05

_AFTERTHOUGHT: Final = re.compile(r" \(after [^)]*\)|: Local: [A-Z][\w ]+$")


@contextmanager
def reaching(settings: KafkaSettings) -> Iterator[None]:
    """What is done here needs a broker: say why if there is none, and which setting librdkafka does not take."""
    try:
        yield
    except (CycleAborted, ProducerLost, KafkaException) as error:
        cause = error.args[0]
        if isinstance(cause, KafkaError) and is_bad_setting(cause):
            raise BadClientSetting(f"librdkafka rejected the settings: {cause.str()}") from error
        if not broker_is_away(error):
            raise
        reported = why(settings)
        reason = _AFTERTHOUGHT.sub("", reported.str()) if reported else str(error)
        if reported is not None and is_refused(reported):
            raise BrokerRefused(f"The broker at {settings.bootstrap_servers} refused: {reason}") from error
        raise Unreachable(
            f"Expected Kafka at {settings.bootstrap_servers}, but no broker answered within "
            f"{settings.request_timeout_s:g} s: {reason}"
        ) from error


def why(settings: KafkaSettings) -> KafkaError | None:
    """What goes wrong when one tries to connect, if librdkafka can tell."""
    errors: list[KafkaError] = []
    config: dict[str, Any] = {**settings.admin(), "error_cb": errors.append}  # the stubs know no callbacks
    admin = AdminClient(config)
    until = time.monotonic() + ASK_S
    while not errors and time.monotonic() < until:
        admin.poll(SLICE_S)
    # "All brokers are down" follows from the reason, and tells less.
    return next((e for e in errors if not says_all_are_down(e)), None)

"""The one place that reads the codes of librdkafka. Everything else asks the questions below; a tidy test holds that.

    refused     no retry helps: authorisation, unsupported version, size
    lost        the producer is fenced or dead: a new one is needed
    missing     the topic or partition does not exist
    away        no broker answered
    end         not an error: the reader has reached the end of a partition

What a caller does about it is its own decision: the runtime in `kapelle.topology.kafka.translate`, a worker in
`kapelle.worker.kafka_clients`. This package is a leaf: programs of users import it, and they need no engine.
"""

from typing import Final

from confluent_kafka import KafkaError, KafkaException

REFUSED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError._AUTHENTICATION,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError._SSL,
    }
)
FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError._FATAL}
)
MISSING: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})
# The brokers are choosing the coordinator of a group. A new cluster does so when it is first asked about a group.
COORDINATOR_COMING: Final = frozenset(
    {
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
# A broker answers so until it has learnt the leader of a partition that was just created or moved.
LEADERLESS: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
    }
)
AWAY: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        *COORDINATOR_COMING,
    }
)
# Reported to a reader that need do nothing: the end of a partition, and connections that librdkafka opens again.
SILENT: Final = frozenset({KafkaError._PARTITION_EOF, KafkaError._TIMED_OUT, KafkaError._TRANSPORT})
# Brokers answer so that have no configuration of groups, none of share groups, or not the requests of their members.
NO_SHARE_GROUPS: Final = frozenset(
    {
        KafkaError.INVALID_REQUEST,
        KafkaError.INVALID_CONFIG,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,
    }
)
# A partition that was assigned a moment ago answers so to a seek.
NOT_YET_FETCHED: Final = frozenset({KafkaError._STATE, KafkaError._TIMED_OUT})


def is_refused(error: KafkaError) -> bool:
    """No retry helps: an operator must grant a right, change a setting or replace a version."""
    return error.code() in REFUSED


def is_final(error: KafkaError) -> bool:
    """This client cannot go on: the broker refused, or the client is dead."""
    return is_refused(error) or error.fatal()


def is_producer_lost(error: KafkaError) -> bool:
    """The producer is fenced or dead: only a new one can go on."""
    return error.fatal() or error.code() in FENCED


def is_fenced(error: KafkaError) -> bool:
    """A newer producer of the same name has taken over."""
    return bool(error.code() == KafkaError._FENCED)


def is_missing(error: KafkaError) -> bool:
    """The topic or the partition does not exist."""
    return error.code() in MISSING


def is_away(error: KafkaError) -> bool:
    """No broker answered. Nothing is known about the request."""
    return error.code() in AWAY


def is_timeout(error: KafkaError) -> bool:
    """The client waited for its whole time-out."""
    return bool(error.code() == KafkaError._TIMED_OUT)


def is_end(error: KafkaError) -> bool:
    """Not an error: the end of a partition."""
    return bool(error.code() == KafkaError._PARTITION_EOF)


def is_out_of_range(error: KafkaError) -> bool:
    """The offset to be read next does not exist, and the settings say to report that."""
    return bool(error.code() == KafkaError._AUTO_OFFSET_RESET)


def is_silent(error: KafkaError) -> bool:
    """A reader need do nothing and report nothing."""
    return error.code() in SILENT


def is_repaired_by_client(error: KafkaError) -> bool:
    """librdkafka repairs it by itself while the reader goes on."""
    return is_silent(error) or (error.retriable() and not error.fatal())


def is_not_yet_fetched(error: KafkaError) -> bool:
    """The partition was assigned a moment ago, and cannot be sought yet."""
    return error.code() in NOT_YET_FETCHED


def is_bad_setting(error: KafkaError) -> bool:
    """librdkafka does not accept a setting."""
    return bool(error.code() == KafkaError._INVALID_ARG)


def says_all_are_down(error: KafkaError) -> bool:
    """All brokers are down. Another error gives the reason."""
    return bool(error.code() == KafkaError._ALL_BROKERS_DOWN)


def seeks_coordinator(error: KafkaError) -> bool:
    """The brokers are choosing the coordinator of a group: ask again."""
    return error.code() in COORDINATOR_COMING


def has_no_leader(error: KafkaError) -> bool:
    """The partition has no leader yet: ask again."""
    return error.code() in LEADERLESS


def no_leader() -> KafkaException:
    """The error that stands for an answer without an offset: no leader has answered."""
    return KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))


def lacks_share_groups(error: KafkaError) -> bool:
    """The broker has no share groups (KIP-932)."""
    return error.code() in NO_SHARE_GROUPS

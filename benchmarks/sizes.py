"""The sizes of all measurements: in full, and in under a minute."""

from dataclasses import dataclass

from benchmarks.latency import Pace
from benchmarks.throughput import Load


@dataclass(frozen=True)
class Sizes:
    """The sizes of one run of the benchmark."""

    warm_up: int  # records through a new broker before anything is measured
    loads: dict[str, Load]  # a runtime that is too slow for the full load gets less of it
    rounds: int
    prestarted: bool  # whether programs start while the failover is measured, which is mostly a wait
    hops: tuple[str, ...]
    pace: Pace
    idle_s: float
    growth_keys: int
    growth_records: int
    growth_waves: int
    kills: int
    stages: Load
    stages_pace: Pace


FULL = Sizes(
    warm_up=300_000,
    loads={
        "ours": Load(200_000, warm_up=20_000),
        "handwritten": Load(200_000, warm_up=20_000),
        "kafka_streams": Load(200_000, warm_up=100_000),
        "quix": Load(50_000, warm_up=5_000),
        "faust": Load(5_000, warm_up=500),
    },
    rounds=4,
    prestarted=False,
    hops=("bare", "ours"),
    pace=Pace(alone=300, records_per_s=500, seconds=8.0),
    idle_s=10.0,
    growth_keys=10_000_000,
    growth_records=100_000,
    growth_waves=3,
    kills=3,
    stages=Load(30_000, warm_up=5_000),
    stages_pace=Pace(alone=100, records_per_s=200, seconds=5.0),
)
QUICK = Sizes(
    warm_up=0,  # the failover comes first, and is not a matter of speed
    loads={
        "ours": Load(40_000, warm_up=10_000),
        "handwritten": Load(40_000, warm_up=10_000),
        "kafka_streams": Load(40_000, warm_up=50_000),  # less would flatter us: the JVM would not be warm
        "quix": Load(3_000, warm_up=300),
        "faust": Load(300, warm_up=50),
    },
    rounds=1,
    prestarted=True,
    hops=("bare", "ours"),
    pace=Pace(alone=30, records_per_s=500, seconds=1.0),
    idle_s=1.5,
    growth_keys=200_000,  # fewer are restored before the clock can tell
    growth_records=5_000,
    growth_waves=1,
    kills=1,
    stages=Load(6_000, warm_up=1_500),
    stages_pace=Pace(alone=10, records_per_s=200, seconds=0.5),
)

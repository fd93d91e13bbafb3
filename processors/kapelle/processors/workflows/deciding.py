"""The decisions of `workflows`: this module imports the modules that have them.

| module | decides on |
|---|---|
| `versions` | `PushVersion`, `ActivateVersion`, `DeactivateWorkflow`, `DeleteWorkflow` |
| `properties` | `ChangeProperties`, `TagWorkflow`, `UntagWorkflow` |
| `starts` | `StartInstances`, `StartTriggered` |
| `restarts` | `QueueRun`, with which `runs` asks for another run of an instance |
| `arrivals` | `EndDisplaced`; the run strategy applied to every new run |
| `queue` | `LaunchQueued`, and `RecordRunEnd`, with which `runs` reports the end of a run |
| `breakpoints` | `SetBreakpoint`, `DeleteBreakpoint`, and `TellBreakpoints`, which tells those that run |
| `children` | `StartChild` and `EndChild`, with which `runs` asks for a subworkflow |
| `schedules` | `PauseSchedules`, `ResumeSchedules`; which time triggers are armed |
| `backfills` | `StartBackfill`, `ActOnBackfill` |
| `timers` | the timers of ticks (`ticks`) and of backfills |
| `terminations` | `TerminateInstance`, `TerminateInstances`, `UnblockInstances` |

They are made on a draft and may be refused: the second shape of `kapelle.processors.decisions`.
"""

from kapelle.processors.workflows import (  # noqa: F401  each registers what it decides
    arrivals,
    backfills,
    breakpoints,
    children,
    properties,
    queue,
    restarts,
    schedules,
    starts,
    terminations,
    timers,
    versions,
)

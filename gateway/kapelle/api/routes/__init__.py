"""The routes of the API, by noun. `ROUTERS` lists them in the order in which they are matched."""

from typing import Final

from fastapi import APIRouter

from kapelle.api.routes import (
    backfills,
    breakpoints,
    definitions,
    events,
    health,
    hooks,
    instances,
    letters,
    metrics,
    outputs,
    permits,
    properties,
    runs,
    schedules,
    signals,
    sns,
    steps,
    tasks,
    workflows,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    definitions.router,
    instances.router,
    events.router,
    runs.router,
    breakpoints.router,
    steps.router,
    schedules.router,
    backfills.router,
    workflows.router,
    properties.router,
    permits.router,
    outputs.router,
    tasks.router,
    signals.router,
    hooks.router,
    sns.router,
    letters.router,
    metrics.router,
)
HEALTH: Final = health.router

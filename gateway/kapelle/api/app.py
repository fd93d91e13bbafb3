"""The application: routes, errors and limits over one journal and one view, which others open and close."""

from importlib.metadata import version
from typing import Final

from fastapi import FastAPI

from kapelle.api import page
from kapelle.api.access import Guard
from kapelle.api.body_limits import BodyLimit
from kapelle.api.claims import Claims
from kapelle.api.context import Context
from kapelle.api.document import Described
from kapelle.api.events import Tails
from kapelle.api.freshness import Marking
from kapelle.api.metrics import Measured, Requests
from kapelle.api.problems import HANDLED, NotSeen, handle_not_seen, handle_problem
from kapelle.api.routes import HEALTH, ROUTERS
from kapelle.api.settings import ApiSettings
from kapelle.topology.journal import Journal
from kapelle.views import Views

BASE: Final = "/api/v3"
# Hooks and SNS know senders by their signatures.
OPEN_TO_ALL: Final = frozenset({f"{BASE}/health", f"{BASE}/ready", f"{BASE}/hooks/", f"{BASE}/sns/"})
ROUTED: Final = (("", HEALTH), *((BASE, router) for router in ROUTERS))
ABOUT: Final = (
    "A workflow orchestrator on Kafka. A write appends a command to the log. The answer comes when its effect is "
    "visible. "
    "Every answer has the position of the view in the header `Kapelle-Watermark`. "
    "Errors are `application/problem+json`."
)


def create_app(journal: Journal, views: Views, settings: ApiSettings | None = None) -> FastAPI:
    """The HTTP API. The view must have been started."""
    chosen = settings or ApiSettings()
    app = Described(title="Kapelle", version=version("kapelle"), description=ABOUT, docs_url=None, redoc_url=None)
    app.routers = ROUTED
    app.state.context = Context(journal, views, chosen)
    app.state.tails = Tails(app.state.context)
    app.state.claims = Claims(app.state.context)
    app.state.requests = Requests()
    app.include_router(HEALTH, prefix=BASE, include_in_schema=False)
    app.include_router(page.router)
    for prefix, router in ROUTED:
        app.include_router(router, prefix=prefix)
    for kind in HANDLED:
        app.add_exception_handler(kind, handle_problem)
    app.add_exception_handler(NotSeen, handle_not_seen)
    app.add_exception_handler(Exception, handle_problem)
    app.add_middleware(BodyLimit, bytes_max=chosen.body_bytes_max)
    app.add_middleware(Marking, context=app.state.context, below=BASE)
    app.add_middleware(Guard, tokens=chosen.tokens, below=BASE, open_to_all=OPEN_TO_ALL)
    app.add_middleware(Measured, requests=app.state.requests)
    return app

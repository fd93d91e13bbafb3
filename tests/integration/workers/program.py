"""A worker for tests, in a process of its own: steps that are slow, deaf, or done, and marks of what they did."""

import argparse
import logging
import sys
import time
from pathlib import Path

from kapelle.worker import Cancelled, Context, HttpTransport, KafkaTransport, Transport, Worker, WorkerSettings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    for option in ("--name", "--marks", "--url", "--bootstrap-servers", "--prefix"):
        parser.add_argument(option, default="")
    parser.add_argument("--dispatch", default="consumer")
    parser.add_argument("--drain-timeout", type=float, default=30.0)
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    transport: Transport
    if args.url:
        transport = HttpTransport(args.url)
    else:
        transport = KafkaTransport(args.bootstrap_servers, args.prefix, dispatch=args.dispatch)
    settings = WorkerSettings(concurrency=4, name=args.name, drain_timeout_s=args.drain_timeout)
    made(Path(args.marks), args.name).run(transport, settings)
    return 0


def made(marks: Path, name: str) -> Worker:
    """The worker. A mark is an empty file: what happened, to which attempt, in whose hands."""
    worker = Worker()

    def mark(what: str, ctx: Context) -> None:
        (marks / f"{what}-{ctx.instance_id}-{ctx.attempt}-{name}").touch()

    @worker.step("slow")
    def slow(seconds: float, ctx: Context) -> None:
        """Works for a while, and hears when it is cancelled."""
        mark("begun", ctx)
        if ctx.cancelled.wait(seconds):
            mark("cancelled", ctx)
            raise Cancelled
        mark("done", ctx)

    @worker.step("first-is-slow")
    def first_is_slow(seconds: float, ctx: Context) -> None:
        """Its first attempt is slow and deaf, and its next ones are done at once."""
        mark("begun", ctx)
        if ctx.attempt == 1:
            time.sleep(seconds)
        mark("done", ctx)

    @worker.step("deaf")
    def deaf(seconds: float, ctx: Context) -> None:
        """Ignores its cancellation."""
        mark("begun", ctx)
        time.sleep(seconds)
        mark("done", ctx)

    return worker


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Loading the export of a day, which may be damaged, and writing it again."""

from pathlib import Path

from kapelle.worker import NonRetryable, Worker

ORDERS = ("at,12.50", "de,40.00", "fr,7.00")

worker = Worker()


def export_of(folder: Path, day: str) -> Path:
    return folder / f"orders-{day}.csv"


@worker.step("load_orders")
def load_orders(day: str, folder: Path) -> dict[str, int]:
    file = export_of(folder, day)
    lines = file.read_text().splitlines() if file.exists() else []
    damaged = [line for line in lines if line.count(",") != 1]
    if damaged or not lines:
        raise NonRetryable(f"the export {file.name} is damaged or missing")
    return {"rows": len(lines)}


@worker.step("repair_export")
def repair_export(day: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Steps run at least once: a second time must leave what the first one left.
    export_of(folder, day).write_text("\n".join(ORDERS))

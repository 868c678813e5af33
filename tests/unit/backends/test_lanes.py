import threading

import pytest

from edgert.backends.base import CompileRequest
from edgert.backends.lanes import Lanes


def test_one_request_is_run_by_the_caller_before_start_returns() -> None:
    ended: list[BaseException | None] = []
    threads: list[threading.Thread] = []

    def run(job: str) -> None:
        threads.append(threading.current_thread())

    lanes = Lanes([run], "test", 1)
    lanes.start("job", ended.append)
    assert ended == [None]
    assert threads == [threading.current_thread()]
    lanes.close()


def test_what_is_more_than_the_lanes_waits_and_is_run_before_close_returns() -> None:
    both_at_work, ended = threading.Barrier(2), []

    def run(_: int) -> None:
        both_at_work.wait(30)

    lanes = Lanes([run, run], "test", 4)
    for job in range(4):
        lanes.start(job, ended.append)
    lanes.close()
    assert ended == [None] * 4


def test_the_error_that_ended_a_job_reaches_its_caller() -> None:
    failed, ended = ValueError("no"), []
    lanes: Lanes[int] = Lanes([lambda job: failed if job else None], "test", 2)
    lanes.start(0, ended.append)
    lanes.start(1, ended.append)
    lanes.close()
    assert ended == [None, failed]


@pytest.mark.parametrize(
    ("threads", "requests", "lanes", "each"),
    [(1, 1, 1, 1), (2, 1, 1, 2), (2, 3, 2, 1), (8, 4, 4, 2), (8, 9, 8, 1), (1, 4, 1, 1)],
)
def test_lanes_share_the_threads(threads: int, requests: int, lanes: int, each: int) -> None:
    request = CompileRequest("m", "CPU", threads=threads, requests=requests)
    assert (request.lanes, request.threads_per_lane) == (lanes, each)

"""Routes for jobs: method calls that a client asks about later."""

# No postponed annotations: those of routes name what only their function knows.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response

from qmf.web.addresses import API
from qmf.web.json_values import time_text
from qmf.web.management.jobs import Job
from qmf.web.management.managements import Managements
from qmf.web.management.parameters import api_router, problems
from qmf.web.scopes import Caller, Scope

JobId = Annotated[str, Path(min_length=1, max_length=100)]


def job_location(job: Job) -> str:
    """Where to ask for a job."""
    return f"{API}/jobs/{job.id}"


def job_json(job: Job) -> dict[str, Any]:
    """A job as JSON."""
    return {
        "id": job.id,
        "href": job_location(job),
        "call": job.what,
        "state": job.state.value,
        "begun": time_text(int(job.begun * 10**9)),
        "ended": None if job.ended is None else time_text(int(job.ended * 10**9)),
        "result": job.result,
        "problem": None if job.problem is None else job.problem.content(),
    }


def router(managements: Managements) -> APIRouter:
    """The routes."""
    access, kept = managements.services.access, managements.jobs
    routes = api_router("jobs")
    Asking = Annotated[Caller, Depends(access.require(Scope.CALL))]

    @routes.get("/jobs", summary="The jobs of the caller")
    async def jobs(caller: Asking) -> dict[str, Any]:
        return {"jobs": [job_json(job) for job in kept.of(caller)]}

    @routes.get("/jobs/{job}", summary="A job, with its result when it is done", responses=problems(404))
    async def job(job: JobId, caller: Asking) -> dict[str, Any]:
        return job_json(kept.find(job, caller))

    @routes.delete("/jobs/{job}", status_code=204, summary="Forget a job", responses=problems(404))
    async def delete(job: JobId, caller: Asking) -> Response:
        kept.delete(kept.find(job, caller))
        return Response(status_code=204)

    return routes

"""The errors that people see: one clear message each, and the exit code that goes with it."""


class TrustError(Exception):
    """A fault that a user can mend. Jobs print its message without a traceback and exit with `exit_code`."""

    exit_code = 2


class ConfigError(TrustError):
    """A config that cannot be run: an unknown key, a wrong type, a value out of range."""


class PreflightError(TrustError):
    """Something the job needs is not there: a file, a model, a right on the storage, room on the cluster."""


class TooManyFailed(TrustError):
    """More rows failed than `max_failed` allows; the tables are written, the rates are withheld."""

    exit_code = 3


class Regression(TrustError):
    """A run is worse than another by more than was allowed; both and their differences are written."""

    exit_code = 4


class RowError(Exception):
    """One row cannot be worked on. It becomes a failed row; it never ends a job.

    Args:
        reason: short snake_case code, counted in manifests and reports.
        detail: the sentence for people: what is wrong and what to do.
        field: the field at fault, where there is one.
    """

    def __init__(self, reason: str, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.field = field


class JobStopped(TrustError):
    """A job ended before its end; what is finished is kept and a restart goes on."""

    exit_code = 1


class StorageError(TrustError, OSError):
    """The storage failed for good, or holds something else than it should; says which object, why and what to do."""

    exit_code = 1

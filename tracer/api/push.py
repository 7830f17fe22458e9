"""Upload an export to the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import validate_repo_id

from tracer.core.errors import UserError
from tracer.models.download import unreachable_hub


def check_push(repository: str) -> None:
    """Raise UserError, before any work, if this cannot be a repository's name or nobody is logged in."""
    try:
        validate_repo_id(repository)
    except HFValidationError:
        raise UserError(f"--push-to {repository}: the name of a repository is OWNER/NAME") from None
    if "/" not in repository:
        raise UserError(f"--push-to {repository}: the name of a repository is OWNER/{repository}")
    if problem := unreachable_hub():
        raise UserError(f"--push-to {repository} needs the network, and {problem}")
    try:
        HfApi().whoami()
    except (HfHubHTTPError, OSError, ValueError):
        raise UserError(f"--push-to {repository} needs a login: run `hf auth login` once") from None


def push(folder: Path, repository: str) -> str:
    """Upload a folder, and return where it is. A repository that does not exist is created as private."""
    api = HfApi()
    try:
        url = api.create_repo(repository, private=True, exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=repository, commit_message="Upload a model with tracer")
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(
            f"the upload to {repository} failed ({reason:.150}); the export is in {folder}: upload it with "
            f"`hf upload {repository} {folder}`"
        ) from error
    return f"uploaded to {url}; a new repository is private until you publish it there"

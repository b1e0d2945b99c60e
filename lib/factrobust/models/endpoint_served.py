"""What a server tells of the model behind an endpoint, and whether it is still the same one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openai

from factrobust.models.base import ModelError
from factrobust.models.endpoint import EndpointModel
from factrobust.models.endpoint_address import Address
from factrobust.models.endpoint_calls import clean, explained, in_parallel
from factrobust.models.endpoint_replies import ReplyError, decode_reply
from factrobust.records import Call, Records

# Of what llama.cpp (in "meta") and vLLM tell, that which goes with the weights: "created" is the time
# of asking, "n_ctx" a setting.
TOLD = ("root", "n_params", "size", "n_vocab", "n_embd")


def open_endpoint(
    address: Address, prompt_format: str | None = None, records: Records | None = None
) -> EndpointModel:
    """The model behind an endpoint, once its server is known to have it.

    What the server tells of the weights (`TOLD`; many tell nothing) is kept in the records, and must
    be the same the next time. Raises ModelError if it is not, and as `told` does.
    """
    model = EndpointModel(address, prompt_format)
    facts = told(model)
    if records is not None and facts:
        call = Call(address.fingerprint, "told", address.model, "{}")
        [known] = records.get([call])
        if known is None:
            records.put([call], [facts])
        elif changed := [key for key in facts if known.get(key, facts[key]) != facts[key]]:
            was, now = ({key: said[key] for key in changed} for said in (known, facts))
            raise ModelError(
                f"{address.name}: the server has another model than the one whose answers are in the "
                f"records ({was} then, {now} now); write another revision= for it, or serve the old one"
            )
    return model


def told(model: EndpointModel) -> dict[str, Any]:
    """What the server tells of the model's weights; {} if it tells nothing.

    Raises ModelError if the server cannot be reached, refuses the key, or lists its models and this
    one is not among them: llama.cpp's server answers under any name.
    """
    # The first word with a server: a wrong URL shall be told soon.
    address = replace(model.address, retries=min(model.address.retries, 2))

    async def ask(client: openai.AsyncOpenAI, _: int) -> dict[str, Any]:
        try:
            listing = client.with_options(max_retries=address.retries).models.with_raw_response
            raw = await listing.list()
            return decode_reply(raw.content)
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError):
            return {}  # a server without this page
        except openai.OpenAIError as error:
            failure = explained(error, address, model.key)
        except ReplyError as error:
            failure = (
                f"{model.name}: what lies at {address.url}/models {clean(str(error), model.key)}; "
                "check the URL, which usually ends in /v1"
            )
        raise ModelError(failure)

    [[(_, listed)]] = in_parallel(model.client, ask, 1, at_once=1)
    served = listed.get("data")
    served = [m for m in served if isinstance(m, dict) and m.get("id")] if served else []
    for about in served:
        if address.model in (about["id"], *(about.get("aliases") or ())):
            facts = about | (about.get("meta") or {})
            return {key: facts[key] for key in TOLD if facts.get(key) is not None}
    if served:
        names = ", ".join(str(m["id"]) for m in served[:5]) + (" ..." if len(served) > 5 else "")
        raise ModelError(
            f"{model.name}: the server has no model {address.model!r}; write the name of one that it "
            f"has after the URL: {clean(names, model.key)}"
        )
    return {}

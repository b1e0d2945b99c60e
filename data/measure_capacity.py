"""How many bits of facts the smallest networks hold: data/world/capacity.csv.

    python data/measure_capacity.py

Each fact is a first name, a last name and one of 22 objects, all drawn evenly. So a fact is
log2(22) = 4.46 bits, and what a network has learned of N facts is N (4.46 - its loss in bits),
after Allen-Zhu and Li (Physics of Language Models 3.3, 2024). Every fact is read EXPOSURE times,
each time in a new order. Names are pairs of tokens, so that more facts are no more parameters.
Where N outgrows the network, bits a parameter stop rising: that is its capacity at this exposure.
"""

from __future__ import annotations

import time
from itertools import product
from math import log, log2

import pandas as pd
import torch
from torch.nn.functional import cross_entropy

from factrobust.models.grow import Plan, network_of
from factrobust.paths import DATA

OBJECTS, NAMES, EXPOSURE, BATCH = 22, 256, 100, 512
FACTS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
WIDTH, LAYERS, SEEDS, RATE = 32, (1,), (0, 1), 5e-3
FILE = DATA / "world" / "capacity.csv"


def drawn(n: int, seed: int) -> torch.Tensor:
    """n facts: first name, last name, object; no two of one name."""
    rng = torch.Generator().manual_seed(seed)
    names = torch.randperm(NAMES * NAMES, generator=rng)[:n]
    objects = torch.randint(OBJECTS, (n,), generator=rng)
    return torch.stack([names // NAMES, NAMES + names % NAMES, 2 * NAMES + objects], dim=1)


def loss_of(network: torch.nn.Module, facts: torch.Tensor) -> torch.Tensor:
    """The mean loss of the objects, of 22, in nats."""
    logits = network(input_ids=facts[:, :2]).logits[:, -1, 2 * NAMES :]
    return cross_entropy(logits, facts[:, 2] - 2 * NAMES)


class Names:
    """What `network_of` asks of a tokenizer."""

    bos_token_id = eos_token_id = pad_token_id = 0

    def __len__(self) -> int:
        return 2 * NAMES + OBJECTS


def learned(layers: int, n: int, seed: int) -> tuple[int, float]:
    """The parameters of a network that read n facts EXPOSURE times, and the bits that it
    learned."""
    network = network_of(Plan("decoder", seed, WIDTH, layers), Names())
    facts, steps = drawn(n, seed), n * EXPOSURE // BATCH
    optimizer = torch.optim.AdamW(network.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 1, (steps - step) / (0.1 * steps))
    )
    order = torch.cat([torch.randperm(n) for _ in range(EXPOSURE)])
    for part in order[: steps * BATCH].split(BATCH):
        loss_of(network, facts[part]).backward()
        optimizer.step()
        optimizer.zero_grad()
        rate.step()
    with torch.no_grad():
        loss = sum(loss_of(network, part) * len(part) for part in facts.split(4096))
    return sum(p.numel() for p in network.parameters()), n * log2(OBJECTS) - float(loss) / log(2)


def main() -> None:
    torch.set_num_threads(1)  # the networks are so small that more would wait for each other
    rows = []
    for layers, n, seed in product(LAYERS, FACTS, SEEDS):
        start = time.time()
        parameters, bits = learned(layers, n, seed)
        rows.append((layers, parameters, n, seed, round(bits), round(bits / parameters, 4)))
        print(*rows[-1], f"{time.time() - start:.0f} s", flush=True)
    columns = ["layers", "parameters", "facts", "seed", "bits", "bits_a_parameter"]
    pd.DataFrame(rows, columns=columns).to_csv(FILE, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Train a small neural network with data-parallel gradient averaging over MPI.

    mpirun -n 4 train.py --epochs 20

The task is to tell the three arms of a spiral apart; the points are made from
--seed, so nothing is downloaded. Every rank holds the whole model, takes its
share of each batch, and the gradients are summed with one allreduce. The
result is therefore the same for any number of ranks, but for the order in
which floating-point numbers are added.

Rank 0 prints one JSON object per epoch. Exit status: 0, 1 on failure, 2 when
an argument is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

ARMS = 3
POINTS_PER_ARM = 2000
FEATURES = 2
HIDDEN = 64
SHAPES = ((FEATURES, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, ARMS), (ARMS,))
MOMENTUM = 0.9
CHECKPOINT_NAME = "checkpoint.npz"


class TrainingError(Exception):
    """What the user can put right; its text is the whole message."""


@dataclass(frozen=True)
class Options:
    """The command line, checked."""

    epochs: int
    batch_size: int
    learning_rate: float
    seed: int
    checkpoint: Path | None


@dataclass
class State:
    """All that a run needs in order to go on: what a checkpoint holds."""

    epoch: int
    weights: Floats
    velocity: Floats


def positive_int(text: str) -> int:
    """Parse a whole number of at least 1, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def seed_number(text: str) -> int:
    """Parse a whole number from 0 to 2**32 - 1, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {2**32 - 1}")
    return value


def learning_rate(text: str) -> float:
    """Parse a number above 0 and up to 10, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and up to 10")
    return value


def parse_options(arguments: list[str]) -> Options:
    """Read the command line; argparse ends the program when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Data-parallel training over MPI; prints one JSON line per epoch.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--epochs", type=positive_int, default=20, help="passes over the data")
    parser.add_argument(
        "--batch-size", type=positive_int, default=300, help="points per step, over all ranks"
    )
    parser.add_argument("--learning-rate", type=learning_rate, default=0.05, help="step length")
    parser.add_argument("--seed", type=seed_number, default=1, help="of data, weights and order")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="write the state to DIR after every epoch, and go on from what is there",
    )
    return Options(**vars(parser.parse_args(arguments)))


def parse_on_rank_zero(arguments: list[str], comm: MPI.Comm) -> Options:
    """Read the command line once, so that a mistake is told once."""
    options: Options | None = None
    status = 0
    if comm.rank == 0:
        try:
            options = parse_options(arguments)
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
    options, status = comm.bcast((options, status))
    if options is None:
        raise SystemExit(status)
    return options


def make_spirals(seed: int) -> tuple[Floats, Ints]:
    """Return points (n, 2) and the arm (n,) each belongs to."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(ARMS), POINTS_PER_ARM)
    radius = np.tile(np.linspace(0.1, 1.0, POINTS_PER_ARM), ARMS)
    angle = radius * 5 + labels * 2 * math.pi / ARMS + random.normal(0, 0.1, len(labels))
    points = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    return points, labels


def split_weights(flat: Floats) -> list[Floats]:
    """Return views of the flat vector, shaped as layers."""
    sizes = [math.prod(shape) for shape in SHAPES]
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, SHAPES, strict=True)]


def first_state(seed: int) -> State:
    """Return random weights, scaled by the width of the layer before."""
    random = np.random.default_rng([seed, 1])
    flat = np.zeros(sum(math.prod(shape) for shape in SHAPES))
    for part in split_weights(flat):
        if part.ndim == 2:
            part[:] = random.normal(0, 1 / math.sqrt(part.shape[0]), part.shape)
    return State(epoch=0, weights=flat, velocity=np.zeros_like(flat))


def forward(weights: Floats, points: Floats) -> tuple[Floats, Floats, Floats]:
    """Return both hidden layers and the probability of each arm."""
    w1, b1, w2, b2, w3, b3 = split_weights(weights)
    hidden1 = np.tanh(points @ w1 + b1)
    hidden2 = np.tanh(hidden1 @ w2 + b2)
    logits = hidden2 @ w3 + b3
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return hidden1, hidden2, exponentials / exponentials.sum(axis=1, keepdims=True)


def gradient_sum(weights: Floats, points: Floats, labels: Ints) -> Floats:
    """Return the gradient of the cross entropy, summed over the points."""
    hidden1, hidden2, probabilities = forward(weights, points)
    _, _, w2, _, w3, _ = split_weights(weights)
    gradient = np.empty_like(weights)
    g1, gb1, g2, gb2, g3, gb3 = split_weights(gradient)
    error = probabilities
    error[np.arange(len(labels)), labels] -= 1
    g3[:], gb3[:] = hidden2.T @ error, error.sum(axis=0)
    error = (error @ w3.T) * (1 - hidden2**2)
    g2[:], gb2[:] = hidden1.T @ error, error.sum(axis=0)
    error = (error @ w2.T) * (1 - hidden1**2)
    g1[:], gb1[:] = points.T @ error, error.sum(axis=0)
    return gradient


def evaluate(weights: Floats, points: Floats, labels: Ints, comm: MPI.Comm) -> tuple[float, float]:
    """Return mean loss and accuracy over all points; each rank does a share."""
    share = slice(comm.rank, None, comm.size)
    _, _, probabilities = forward(weights, points[share])
    mine = labels[share]
    loss = -np.log(probabilities[np.arange(len(mine)), mine] + 1e-300).sum()
    right = (probabilities.argmax(axis=1) == mine).sum()
    totals = np.array([loss, right], dtype=np.float64)
    comm.Allreduce(MPI.IN_PLACE, totals)
    return float(totals[0] / len(labels)), float(totals[1] / len(labels))


def train_epoch(
    state: State, points: Floats, labels: Ints, options: Options, comm: MPI.Comm
) -> None:
    """Move the state on by one pass over the data."""
    state.epoch += 1
    # The order depends on the epoch alone: a resumed run continues the same one.
    order = np.random.default_rng([options.seed, 2, state.epoch]).permutation(len(points))
    for start in range(0, len(order), options.batch_size):
        batch = order[start : start + options.batch_size]
        mine = batch[comm.rank :: comm.size]
        gradient = gradient_sum(state.weights, points[mine], labels[mine])
        comm.Allreduce(MPI.IN_PLACE, gradient)
        state.velocity *= MOMENTUM
        state.velocity -= options.learning_rate / len(batch) * gradient
        state.weights += state.velocity


def read_checkpoint(options: Options) -> State | None:
    """Return what an earlier run left, or None when there is nothing."""
    if options.checkpoint is None:
        return None
    file = options.checkpoint / CHECKPOINT_NAME
    try:
        with np.load(file, allow_pickle=False) as stored:
            state = State(int(stored["epoch"]), stored["weights"], stored["velocity"])
            made_with = (int(stored["seed"]), int(stored["batch_size"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise TrainingError(
            f"checkpoint {file} cannot be read ({error}): remove it to start afresh"
        ) from error
    if state.weights.shape != first_state(options.seed).weights.shape:
        raise TrainingError(f"checkpoint {file} is of another model: remove it to start afresh")
    if made_with != (options.seed, options.batch_size):
        raise TrainingError(
            f"checkpoint {file} was made with --seed {made_with[0]} --batch-size {made_with[1]}, "
            f"not {options.seed} and {options.batch_size}: give those, or another --checkpoint"
        )
    return state


def write_checkpoint(state: State, options: Options) -> None:
    """Replace the checkpoint in one step: a killed run leaves the one before."""
    if options.checkpoint is None:
        return
    try:
        options.checkpoint.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=options.checkpoint, prefix=".", suffix=".npz", delete=False
        ) as file:
            np.savez(
                file,
                epoch=state.epoch,
                weights=state.weights,
                velocity=state.velocity,
                seed=options.seed,
                batch_size=options.batch_size,
            )
        os.replace(file.name, options.checkpoint / CHECKPOINT_NAME)
    except OSError as error:
        raise TrainingError(
            f"checkpoint in {options.checkpoint} cannot be written: {error}"
        ) from error


def starting_state(options: Options, comm: MPI.Comm) -> State:
    """Return the state that rank 0 has read or made, on every rank."""
    state: State | None = None
    problem = ""
    if comm.rank == 0:
        try:
            state = read_checkpoint(options) or first_state(options.seed)
        except TrainingError as error:
            problem = str(error)
    state, problem = comm.bcast((state, problem))
    if state is None:
        raise TrainingError(problem)
    return state


def train(options: Options, comm: MPI.Comm) -> None:
    """Train to the last epoch, printing and saving after each."""
    if options.batch_size < comm.size:
        raise TrainingError(
            f"--batch-size {options.batch_size} leaves some of the {comm.size} ranks without work: "
            f"make it at least {comm.size}"
        )
    began = time.monotonic()
    points, labels = make_spirals(options.seed)
    steps_per_epoch = math.ceil(len(points) / options.batch_size)
    state = starting_state(options, comm)
    if state.epoch >= options.epochs and comm.rank == 0:
        print(
            f"train.py: nothing to do: the checkpoint has {state.epoch} epochs, "
            f"--epochs is {options.epochs}",
            file=sys.stderr,
        )
    while state.epoch < options.epochs:
        train_epoch(state, points, labels, options, comm)
        loss, accuracy = evaluate(state.weights, points, labels, comm)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} after epoch {state.epoch}: "
                f"try a --learning-rate below {options.learning_rate}"
            )
        if comm.rank == 0:
            write_checkpoint(state, options)
            report = {
                "epoch": state.epoch,
                "step": state.epoch * steps_per_epoch,
                "loss": round(loss, 6),
                "accuracy": round(accuracy, 4),
                "progress": round(state.epoch / options.epochs, 4),
                "ranks": comm.size,
                "seconds": round(time.monotonic() - began, 3),
            }
            print(json.dumps(report), flush=True)


def main() -> int:
    """Run the program; return its exit status."""
    comm = MPI.COMM_WORLD
    options = parse_on_rank_zero(sys.argv[1:], comm)
    try:
        train(options, comm)
    except TrainingError as error:
        # Known to every rank, or to rank 0 while it saves: told once. Abort,
        # since the other ranks may be waiting for this one.
        if comm.rank == 0:
            print(f"train.py: {error}", file=sys.stderr, flush=True)
            comm.Abort(1)
        comm.Barrier()
    except Exception:
        # A rank that died would leave the others waiting in an allreduce.
        traceback.print_exc()
        comm.Abort(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

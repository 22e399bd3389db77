#!/usr/bin/python3
"""Train a small neural network with Horovod and Keras.

    mpirun -n 2 train_tensorflow.py
    horovodrun -np 2 --hostfile /etc/mpi/hostfile train_tensorflow.py

The task is that of train_horovod.py: to tell whether a point is outside of a circle. Rank 0 prints a JSON object for each epoch. Exit
status: 0, and 1 if the last accuracy is below --target.
"""

import argparse
import json

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

BATCH = 100


def points(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a plane, and for each whether it is outside of the circle."""
    x = np.random.default_rng(seed).standard_normal((count, 2)).astype("float32")
    return x, (np.linalg.norm(x, axis=1) > 1).astype("int64")


class Report(tf.keras.callbacks.Callback):
    """Print a JSON object at the end of each epoch."""

    accuracy = 0.0

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Test with points that no rank has trained with: each rank tests others."""
        _, mine = self.model.evaluate(*points(1000 + hvd.rank(), 2000), batch_size=BATCH, verbose=0)
        self.accuracy = float(hvd.allreduce(mine, name="accuracy"))
        if hvd.rank() == 0:
            line = {"epoch": epoch + 1, "loss": round(float(logs["loss"]), 4), "accuracy": round(self.accuracy, 4), "ranks": hvd.size()}
            print(json.dumps(line), flush=True)


def main() -> int:
    """Train, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--target", type=float, default=0.95, help="the accuracy that the last epoch must reach")
    options = parser.parse_args()

    hvd.init()
    tf.random.set_seed(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    x, y = points(1, 6000)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shard(hvd.size(), hvd.rank()).shuffle(len(x), seed=1).batch(BATCH)
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(2)])
    model.compile(
        optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * hvd.size())),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    report = Report()
    # The order matters: the loss is the mean of all ranks before it is printed.
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), report]
    model.fit(data, epochs=options.epochs, callbacks=callbacks, verbose=0)
    if report.accuracy < options.target:
        if hvd.rank() == 0:
            print(f"train_tensorflow.py: the accuracy is {report.accuracy:.4f}, below {options.target}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

/** Connects two sockets with each other, so that they end together. */
export function pipe(a, b) {
  for (const [from, to] of [[a, b], [b, a]]) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => to.end());
  }
}

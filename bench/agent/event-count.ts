// Counts events of a stream without parsing what they say: the clients share the cores with the servers.

/** Counts the frames of an event in a stream, across the pieces in which it comes. */
export async function countEvents(
  response: AsyncIterable<Buffer>,
  name: string,
  onPiece?: (count: number) => void,
): Promise<number> {
  const wanted = `event: ${name}\n`;
  let [count, rest] = [0, ''];
  for await (const piece of response) {
    const text = rest + piece.toString('latin1');
    if (text.includes('event: error')) throw new Error(text.slice(0, 500));
    for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) count += 1;
    // Too short to hold one that was counted.
    rest = text.slice(1 - wanted.length);
    onPiece?.(count);
  }
  return count;
}

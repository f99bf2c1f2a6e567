// Remembers what the last text gave, for texts that hardly change from one call to the next, such as the host that clients ask for.

/** `read` depends on its text alone. */
export function rememberLast<T>(read: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly value: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}

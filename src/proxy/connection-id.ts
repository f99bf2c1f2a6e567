// Numbers that tell one client connection from another, whatever version of HTTP it speaks: what a client warmed for
// itself is known by them.
let lastId = 0;

/** Never 0. */
export function nextConnectionId(): number {
  lastId += 1;
  return lastId;
}

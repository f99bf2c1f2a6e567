// Where the links of an archive lead when each is followed through the others, as the kernel would do it. To count the `..`
// of one target is not enough: `a/b/in -> ..` is harmless by itself, and `out -> a/b/in/../..` leaves the tree by it. Pure.

export type LinkProblem = { readonly path: string; readonly reason: string };

/** What Linux follows in one path. */
const MAX_HOPS = 40;
/** Of all links together: names that are looked at. Archives of the public clients have no links at all. */
const MAX_STEPS = 200_000;

/** `links`: targets by path. No link lies below another one. Undefined: all of them stay in the tree. */
export function findLinkProblem(links: ReadonlyMap<string, string>): LinkProblem | undefined {
  let steps = 0;
  for (const [path, target] of links) {
    if (target.startsWith('/')) return { path, reason: 'is a link to an absolute path' };
    /** The paths of the directories on the way, the last one innermost. */
    const trail = parentsOf(path);
    const names = toNames(target);
    for (let hops = 0; names.length > 0; ) {
      steps += 1;
      if (steps > MAX_STEPS) return { path, reason: 'is one link too many to follow' };
      const name = names.pop();
      if (name === '..') {
        if (trail.pop() === undefined) return { path, reason: 'is a link that leads outside of the root' };
        continue;
      }
      const parent = trail.at(-1);
      const next = parent === undefined ? `${name}` : `${parent}/${name}`;
      const through = links.get(next);
      if (through === undefined) {
        trail.push(next);
        continue;
      }
      hops += 1;
      if (hops > MAX_HOPS) return { path, reason: `is a link that leads over more than ${MAX_HOPS} others` };
      if (through.startsWith('/')) return { path, reason: 'is a link to an absolute path' };
      names.push(...toNames(through));
    }
  }
  return undefined;
}

/** The next one last. */
function toNames(target: string): string[] {
  return target
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .toReversed();
}

function parentsOf(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, at) => names.slice(0, at + 1).join('/'));
}

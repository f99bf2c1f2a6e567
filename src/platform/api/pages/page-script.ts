// The script of the pages: keys alone, everything works without it. Arrow keys (or j and k) go through a list of links, Home and End to
// its ends, the left arrow to the run above, and / to the filter. It creates no HTML.

/** Longer ones are refused by the sign-in. */
const MAX_NEXT = 512;

export const SCRIPT = `'use strict';
const links = [...document.querySelectorAll('[data-keys] a[data-row]')];
const depthOf = (link) => Number(link.dataset.row);
const go = (at) => links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
const parentOf = (at) => {
  const above = links.slice(0, at).findLastIndex((link) => depthOf(link) < depthOf(links[at]));
  return above < 0 ? at : above;
};
document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target instanceof Element && target.closest('input, select, textarea, pre')) return;
  const at = links.indexOf(document.activeElement);
  const moves = {
    ArrowDown: () => go(at + 1),
    j: () => go(at + 1),
    ArrowUp: () => go(at - 1),
    k: () => go(at - 1),
    ArrowLeft: () => go(parentOf(at)),
    Home: () => go(0),
    End: () => go(links.length - 1),
  };
  if (key === '/') document.querySelector('input[type=search]')?.focus();
  else if (Object.hasOwn(moves, key) && links.length > 0 && (at >= 0 || key === 'j' || key === 'k')) moves[key]();
  else return;
  event.preventDefault();
});
const signIn = document.querySelector('a[data-sign-in]');
const here = location.pathname + location.search;
if (signIn !== null && ${MAX_NEXT} >= here.length) signIn.search = '?next=' + encodeURIComponent(here);
`;

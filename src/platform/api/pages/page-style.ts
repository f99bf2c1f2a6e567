// The style of the pages of the platform: what pages share, and trees of runs.
import { COMMON_STYLE } from '../../../base/html/common-style.ts';

/** Classes d0 to d11: how far a run is indented. */
const DEPTHS = Array.from({ length: 12 }, (_, at) => `.d${at}{padding-left:calc(${at}*var(--step))}`).join(
  '',
);

const TREE =
  ':root{--step:.45rem}@media(min-width:1400px){:root{--step:.9rem}}.trace{display:grid;gap:1.25rem}@media(min-width:1000px){.trace{grid-template-columns:minmax(22rem,2fr) 3fr;align-items:start}' +
  '.tree{position:sticky;top:0;max-height:100vh;overflow:auto}}.trace>*{min-width:0}' +
  '.tree ol{list-style:none;margin:0;padding:0}.tree a{display:grid;grid-template-columns:minmax(0,5fr) minmax(5rem,3fr) 4.75rem;gap:.75rem;' +
  'padding:.25rem .4rem;color:inherit;text-decoration:none;border-radius:4px;align-items:center}' +
  '.tree a:hover{background:var(--soft)}.tree a[aria-current]{background:var(--here)}' +
  '.tree .what{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.tree wbr{display:none}' +
  '.bar{width:100%;height:10px;background:var(--soft);border-radius:2px;display:block}.bar rect{fill:var(--link)}' +
  '.bar rect.error{fill:var(--bad)}.bar rect.pending{fill:var(--busy)}.took{text-align:right;font-size:.85rem;white-space:nowrap;' +
  'font-variant-numeric:tabular-nums;color:var(--faint)}' +
  '.sum{color:var(--faint);margin:0 0 .5rem .4rem}details{margin-top:1rem}summary{cursor:pointer;font-weight:600;font-size:.95rem}' +
  'details pre{margin-top:.35rem}ul.plain{list-style:none;padding:0;margin:.25rem 0}' +
  '@media(max-width:520px){.tree a{grid-template-columns:minmax(0,1fr) 4.75rem}.tree .bar{display:none}}';

export const STYLE: string = COMMON_STYLE + DEPTHS + TREE;

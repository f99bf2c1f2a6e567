// The script of the page: keys, and the live table. Everything but that table works without it. It creates no HTML: texts are set as texts.
import { columns } from './record-row.ts';

const MAX_ROWS = 500;

const KEYS = `const isField = (target) => target instanceof Element && target.closest('input, select, textarea') !== null;
const isControl = (target) => target instanceof Element && target.closest('button, a, summary') !== null;
document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isField(target)) return;
  const rows = [...document.querySelectorAll('[data-live] tbody tr')];
  const at = rows.indexOf(document.activeElement);
  const go = (to) => rows[Math.max(0, Math.min(rows.length - 1, to))]?.focus();
  const pause = document.querySelector('[data-pause]');
  const moves = { j: () => go(at + 1), k: () => go(at - 1) };
  if (at >= 0) Object.assign(moves, { ArrowDown: moves.j, ArrowUp: moves.k, Home: () => go(0), End: () => go(rows.length - 1) });
  if (key === '/') document.querySelector('input[type=search], input[type=url]')?.focus();
  else if (key === ' ' && pause !== null && !isControl(target)) pause.click();
  else if (Object.hasOwn(moves, key) && rows.length > 0) moves[key]();
  else return;
  event.preventDefault();
});
`;

const LIVE = `const live = document.querySelector('[data-live]');
const part = (name) => document.querySelector('[data-' + name + ']');
const start = () => {
  const [body] = live.tBodies;
  const [pause, state, counts, form] = ['pause', 'state', 'counts', 'filter'].map(part);
  const columns = ${JSON.stringify(columns.map((name) => name.toLowerCase()))};
  let [isPaused, seen, skipped, missed, isFirst, waitMs] = [false, 0, 0, 0, true, 1000];
  let controller = new AbortController();
  const number = (value) => value.toLocaleString('en-US');
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const count = () => {
    const parts = [number(seen) + ' records', ...(skipped > 0 ? [number(skipped) + ' of them not shown'] : [])];
    if (isPaused && missed > 0) parts.push(number(missed) + ' since the pause');
    counts.textContent = parts.join(', ') + '.';
  };
  const rowOf = ([kind, ...texts]) => {
    const row = document.createElement('tr');
    row.setAttribute('role', 'row');
    row.tabIndex = -1;
    for (const [at, text] of texts.entries()) {
      const cell = document.createElement('td');
      cell.setAttribute('role', 'cell');
      cell.className = columns[at] === 'outcome' ? kind + ' outcome' : columns[at];
      const inner = document.createElement('bdi');
      inner.textContent = text;
      cell.append(inner);
      row.append(cell);
    }
    return row;
  };
  const show = (rows) => {
    const made = document.createDocumentFragment();
    made.append(...rows.toReversed().map(rowOf));
    body.prepend(made);
    while (body.rows.length > ${MAX_ROWS}) {
      const last = body.lastElementChild;
      if (last === document.activeElement) last.previousElementSibling.focus();
      last.remove();
    }
    for (const [at, row] of [...body.rows].slice(0, rows.length + 1).entries()) row.tabIndex = at === 0 ? 0 : -1;
  };
  const take = (piece) => {
    if (isFirst) body.replaceChildren();
    isFirst = false;
    seen += piece.rows.length + piece.skipped;
    skipped += piece.skipped;
    if (isPaused) {
      skipped += piece.rows.length;
      missed += piece.rows.length + piece.skipped;
    } else if (piece.rows.length > 0) show(piece.rows);
    count();
  };
  const read = async (response) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const lines = (rest + next.value).split('\\n');
      rest = lines.pop();
      for (const line of lines) {
        const piece = JSON.parse(line);
        take(piece);
        if (piece.ended === 'session') return 'ended';
      }
    }
    return 'lost';
  };
  const follow = async ({ signal }) => {
    const address = '/ui/stream?filter=' + encodeURIComponent(form.elements.filter.value);
    try {
      const response = await fetch(address, { signal });
      if (response.status === 401) return 'ended';
      if (!response.ok) return 'busy';
      say(isPaused ? 'Paused.' : 'Live.');
      waitMs = 1000;
      return await read(response);
    } catch {
      return signal.aborted ? 'replaced' : 'lost';
    }
  };
  const connect = async () => {
    controller.abort();
    controller = new AbortController();
    [isFirst, seen, skipped, missed] = [true, 0, 0, 0];
    const end = await follow(controller);
    if (end === 'replaced') return;
    if (end === 'ended') return say('The session has ended: reload the page and sign in.');
    say(end === 'busy' ? 'Too many pages and readers follow the records: this one waits.' : 'The connection was lost: trying again.');
    setTimeout(connect, waitMs);
    waitMs = Math.min(30000, waitMs * 2);
  };
  pause.hidden = false;
  part('apply').hidden = true;
  part('reload').hidden = true;
  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    missed = 0;
    pause.setAttribute('aria-pressed', String(isPaused));
    say(isPaused ? 'Paused.' : 'Live.');
    count();
  });
  let typing;
  const apply = () => {
    clearTimeout(typing);
    const { value } = form.elements.filter;
    history.replaceState(null, '', value === '' ? '/ui' : '/ui?filter=' + encodeURIComponent(value));
    connect();
  };
  form.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(apply, 300);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    apply();
  });
  connect();
};
if (live !== null) start();
`;

export const SCRIPT: string = `'use strict';\n${KEYS}${LIVE}`;

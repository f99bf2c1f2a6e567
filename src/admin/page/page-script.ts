// The script of the page: keys alone, everything but the live table works without it. It creates no HTML.

export const SCRIPT = `'use strict';
const isTyping = (target) => target instanceof Element && target.closest('input, select, textarea, button, a, summary, pre') !== null;
document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(target)) return;
  if (key !== '/') return;
  document.querySelector('input[type=search], input[type=url]')?.focus();
  event.preventDefault();
});
`;

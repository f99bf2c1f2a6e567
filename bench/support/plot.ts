// A bar chart as SVG: the median of each subject with its least and most, on a linear scale, readable on light and dark pages.
import type { Spread } from './percentiles.ts';

export type Bar = { readonly name: string; readonly spread: Spread; readonly isOurs: boolean };

const [WIDTH, ROW, LEFT, RIGHT, TOP] = [720, 24, 130, 110, 44] as const;

export function plotBars(title: string, unit: string, bars: readonly Bar[]): string {
  const sorted = bars.toSorted((a, b) => a.spread.median - b.spread.median);
  // One slow subject must not make the bars of all others invisible: the scale ends at ten times the middle one.
  const middle = sorted[sorted.length >> 1]?.spread.median ?? 1;
  const end = Math.min(Math.max(...bars.map(({ spread }) => spread.median)), middle * 10) * 1.05;
  const x = (value: number): number => LEFT + (Math.min(value, end) / end) * (WIDTH - LEFT - RIGHT);
  const rows = sorted.map(({ name, spread, isOurs }, i) => {
    const [y, { median, low, high }] = [TOP + i * ROW, spread];
    const cut = median > end ? ' (cut)' : high > end ? ` (line cut at the scale, most ${format(high)})` : '';
    return [
      `<text class="t" x="${LEFT - 8}" y="${y + 15}" text-anchor="end">${escapeXml(name)}</text>`,
      `<rect class="${isOurs ? 'ours' : 'bar'}" x="${LEFT}" y="${y + 3}" width="${(x(median) - LEFT).toFixed(1)}" height="${ROW - 8}"/>`,
      `<path class="spread" d="M${x(low).toFixed(1)} ${y + ROW / 2 - 1}H${x(high).toFixed(1)}${high > end ? 'm-5,-4l5,4l-5,4' : ''}"/>`,
      `<text class="t" x="${(x(Math.max(median, high)) + 6).toFixed(1)}" y="${y + 15}">${format(median)}${cut}</text>`,
    ].join('\n');
  });
  const height = TOP + sorted.length * ROW + 12;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escapeXml(title)}</title>
<style>
.t { font: 12px system-ui, sans-serif; fill: #57606a } .h { font: 600 14px system-ui, sans-serif; fill: #57606a }
.bar { fill: #8c959f } .ours { fill: #2f81f7 } .spread { stroke: #d1242f; stroke-width: 1.5; fill: none }
</style>
<text class="h" x="8" y="20">${escapeXml(title)}</text>
<text class="t" x="8" y="36">${escapeXml(unit)}; the line is the least to the most of the rounds</text>
${rows.join('\n')}
</svg>
`;
}

function format(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

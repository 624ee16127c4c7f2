// Reads the trace from the page, then shows it.
import { render } from 'preact';
import { loadTrace } from './data/trace';
import { Store } from './state';
import { App } from './ui/app';
import { forTests } from './ui/stage';
import './style.css';

async function main(): Promise<void> {
  const root = document.getElementById('app')!;
  const began = performance.now();
  try {
    const trace = await loadTrace((part) => {
      document.getElementById('progress')!.textContent = ` ${Math.round(part * 100)}\u202f%`;
    });
    const decoded = performance.now();
    document.title = `${trace.title} – gofer trace view`;
    const store = new Store(trace);
    root.textContent = '';
    render(<App store={store} />, root);
    // For tests and measurements.
    Object.assign(window, { gofer: { trace, store, decodeMs: decoded - began, draw: () => forTests.draw(), timeline: () => forTests.timeline } });
  } catch (error) {
    root.textContent = '';
    const text = document.createElement('p');
    text.className = 'loading';
    text.textContent = error instanceof Error ? error.message : String(error);
    root.append(text);
    throw error;
  }
}

void main();

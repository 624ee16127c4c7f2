// The lower part of the page: tabs.
import type { ComponentChildren } from 'preact';
import type { Theme } from '../draw/palette';
import type { Timeline } from '../draw/timeline';
import { count } from '../format';
import type { Store, Tab } from '../state';
import { Functions } from './functions';
import { useStore } from './hooks';
import { Latency } from './latency';
import { Matches } from './matches';
import { Selection } from './selection';

export interface PanelProps {
  store: Store;
  theme: Theme;
  timeline: Timeline;
}

export function Panel(props: PanelProps) {
  const { store } = props;
  const tab = useStore(store, (s) => s.tab);
  const matches = useStore(store, (s) => (s.flags ? s.matches : -1));
  const height = useStore(store, (s) => s.panelHeight);
  const name = (id: Tab, label: ComponentChildren) => (
    <button role="tab" aria-selected={tab === id} id={`tab-${id}`} onClick={() => store.set({ tab: id })}>
      {label}
    </button>
  );
  return (
    <div class="panel" style={{ height: `${height}px` }}>
      <Grip store={store} />
      <div class="tabs" role="tablist">
        {name('functions', 'Functions')}
        {name('selection', 'Selection')}
        {name('matches', matches < 0 ? 'Matches' : `Matches (${count(matches)})`)}
        {name('latency', 'Latency')}
      </div>
      <div class="body" id="panel">
        {tab === 'selection' && <Selection {...props} />}
        {tab === 'matches' && <Matches {...props} />}
        {tab === 'latency' && <Latency {...props} />}
        {tab === 'functions' && <Functions {...props} />}
      </div>
    </div>
  );
}

function Grip({ store }: { store: Store }) {
  const drag = (e: PointerEvent) => {
    if (e.buttons !== 1) return;
    const panelHeight = Math.max(90, Math.min(window.innerHeight - 240, window.innerHeight - e.clientY));
    store.set({ panelHeight });
  };
  return (
    <div
      class="grip"
      onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
      onPointerMove={drag}
    />
  );
}

// One HTML file with everything in it. Its output is tools/trace/view/viewer.html, or VIEWER_DIR.
import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

export default defineConfig({
  base: './',
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    modulePreload: false,
    outDir: process.env.VIEWER_DIR ?? '../trace/view',
    emptyOutDir: false,
    rollupOptions: { input: 'viewer.html' },
  },
});

// A table whose rows are replaced as a whole: Vue changes only what differs, so focus and selection stay.
// A cell is {t: text, f: all of a text that was cut, h: address, k: class, p: points of a small plot, n: name of the plot}.
export default {
  template: `
    <div class="qmf-scroll" :class="{ scrolled }" role="region" :aria-label="label" tabindex="-1"
        @scroll.passive="scrolled = $event.target.scrollLeft > 0">
      <table class="qmf-table" :class="{ 'qmf-cards': cards }" :aria-busy="busy">
        <thead>
          <tr>
            <th v-for="column in columns" :key="column.name" scope="col"
                :class="{ right: column.right }" :aria-sort="order(column)" :title="column.desc">
              <button v-if="sortable" type="button" @click="$emit('sort', column.name)"
                  :aria-label="'Sort by ' + column.title">{{ column.title }}<span aria-hidden="true">{{ arrow(column) }}</span></button>
              <span v-else>{{ column.title }}</span>
              <small v-if="column.unit">{{ column.unit }}</small>
            </th>
          </tr>
        </thead>
        <tbody @keydown="move">
          <tr v-for="row in rows" :key="row.key" :class="row.k">
            <td v-for="(cell, at) in row.cells" :key="at" :data-label="columns[at] && columns[at].title"
                :class="[cell.k, { right: columns[at] && columns[at].right, fresh: fresh[row.key + '/' + at] }]"><div>
              <a v-if="cell.h" :href="cell.h" :title="cell.f">{{ cell.t }}</a>
              <span v-else-if="cell.f" :title="cell.f">{{ cell.t }}</span>
              <template v-else>{{ cell.t }}</template>
              <button v-if="cell.f" type="button" class="qmf-mini" :data-copy="cell.f">Copy</button>
              <template v-for="part in cell.parts || []">
                <span class="qmf-part"><i>{{ part.n }}</i> <a v-if="part.h" :href="part.h" :title="part.f">{{ part.t }}</a><b v-else :title="part.f">{{ part.t }}</b>
                  <button v-if="part.f" type="button" class="qmf-mini" :data-copy="part.f">Copy</button></span>
              </template>
              <svg v-if="cell.p" class="qmf-spark" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" :aria-label="cell.n">
                <title>{{ cell.n }}</title><polyline :points="cell.p" />
              </svg>
              <button v-if="cell.b" type="button" class="qmf-mini" @click="$emit('act', cell.b)">{{ cell.bt }}</button>
            </div></td>
          </tr>
        </tbody>
      </table>
      <p v-if="!rows.length" class="qmf-empty">{{ empty }}</p>
    </div>`,
  props: {
    label: String,
    columns: Array,
    rows: Array,
    sort: String,
    descending: Boolean,
    sortable: Boolean,
    cards: Boolean,
    marked: Boolean,
    busy: Boolean,
    empty: String,
  },
  data() {
    return { fresh: {}, timer: null, scrolled: false };
  },
  watch: {
    rows(now, before) {
      if (!this.marked) return;
      const old = new Map(before.map((row) => [row.key, row.cells]));
      const fresh = {};
      for (const row of now) {
        const cells = old.get(row.key);
        if (!cells) continue;
        row.cells.forEach((cell, at) => {
          if (cells[at] && !cell.q && (cells[at].t !== cell.t || cells[at].f !== cell.f)) fresh[row.key + "/" + at] = true;
        });
      }
      this.fresh = fresh;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.fresh = {}), 1200);
    },
  },
  beforeUnmount() {
    clearTimeout(this.timer);
  },
  methods: {
    order(column) {
      if (!this.sortable || column.name !== this.sort) return undefined;
      return this.descending ? "descending" : "ascending";
    },
    arrow(column) {
      return column.name !== this.sort ? "" : this.descending ? " ▼" : " ▲";
    },
    move(event) {
      const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
      if (!step || event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
      const links = [...this.$el.querySelectorAll("tbody tr")]
        .map((row) => row.querySelector("a, button"))
        .filter((link) => link);
      const row = event.target.closest("tr");
      const at = links.findIndex((link) => row && row.contains(link));
      const next = links[at + step];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    },
  },
};

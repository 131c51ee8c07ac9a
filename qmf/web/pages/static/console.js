// Keys of the web console, and the choice between dark and light, which the browser remembers.
(() => {
  "use strict";
  const stored = () => localStorage.getItem("qmf-theme") || "auto";
  const wantsDark = () =>
    stored() === "dark" || (stored() === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const apply = () => {
    const dark = wantsDark();
    document.documentElement.classList.toggle("qmf-dark", dark);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
    if (window.Quasar && window.Quasar.Dark) window.Quasar.Dark.set(dark);
    const button = document.getElementById("qmf-theme");
    if (button) {
      button.textContent = { auto: "◐", dark: "●", light: "○" }[stored()];
      button.setAttribute("aria-label", "Colours: " + stored());
      button.title = "Colours: " + stored() + " (d)";
    }
    window.dispatchEvent(new CustomEvent("qmf-theme", { detail: dark }));
  };
  const next = () => {
    localStorage.setItem("qmf-theme", { auto: "dark", dark: "light", light: "auto" }[stored()]);
    apply();
  };
  window.qmfDark = wantsDark;
  apply();
  // The page is built by a script that runs later.
  const observer = new MutationObserver(() => {
    if (document.getElementById("qmf-theme")) {
      observer.disconnect();
      apply();
    }
  });
  observer.observe(document.documentElement, { childList: true, subtree: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);

  const places = { o: "/", a: "/agents", c: "/classes", e: "/events", p: "/plots", g: "/graph", r: "/report" };
  const editing = (target) =>
    target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
  let waiting = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (editing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (document.querySelector(".q-dialog__inner")) return;
    if (waiting) {
      waiting = false;
      if (places[event.key]) {
        event.preventDefault();
        location.href = places[event.key];
      }
      return;
    }
    const click = (id) => {
      const found = document.getElementById(id);
      if (found) {
        event.preventDefault();
        found.click();
      }
    };
    switch (event.key) {
      case "g":
        waiting = true;
        setTimeout(() => (waiting = false), 1500);
        break;
      case "/": {
        const filter = document.querySelector(".qmf-filter input");
        if (filter) {
          event.preventDefault();
          filter.focus();
          filter.select();
        }
        break;
      }
      case "?":
        click("qmf-help");
        break;
      case "d":
        next();
        break;
      case " ":
        if (event.target.tagName !== "BUTTON" && event.target.tagName !== "A") click("qmf-pause");
        break;
      case "[":
        click("qmf-previous");
        break;
      case "]":
        click("qmf-next");
        break;
      case "j":
      case "ArrowDown": {
        if (event.target !== document.body) break;
        const first = document.querySelector(".qmf-table tbody a, .qmf-table tbody button");
        if (first) {
          event.preventDefault();
          first.focus();
        }
        break;
      }
    }
  });
  // Browsers have the clipboard on pages of TLS and of the own machine only, and may refuse it; what is selected can be
  // copied everywhere.
  const copy = async (button) => {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  document.addEventListener("click", (event) => {
    if (event.target.id === "qmf-theme") next();
    if (event.target.dataset.copy) copy(event.target);
  });
})();

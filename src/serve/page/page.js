'use strict';
// Puts the page together.

function startViews() {
  const show = (view) => {
    document.body.dataset.view = view;
    for (const button of document.querySelectorAll('.views button'))
      button.setAttribute('aria-pressed', String(button.dataset.shows === view));
  };
  for (const button of document.querySelectorAll('[data-shows]'))
    button.addEventListener('click', () => show(button.dataset.shows));
}

startTheme();
startSettings();
startViews();
machine.listeners.push((status) => (chat.modelId = status.model?.id ?? chat.modelId));
machine.start();
chat.start();
// A telephone would open its keyboard.
if (matchMedia('(hover: hover)').matches) find('message').focus();

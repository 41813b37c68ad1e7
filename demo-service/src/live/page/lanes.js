// On a small screen a picture is wider than its frame. The names of its lanes stay where they can be
// read, whatever of the picture is in sight.

export function keepNames(picture) {
  const place = () => {
    const svg = picture.querySelector("svg");
    if (!svg) { return; }
    const unit = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    picture.style.setProperty("--scrolled", `${picture.scrollLeft * unit}px`);
    picture.classList.toggle("scrolled", picture.scrollLeft > 0);
  };
  picture.addEventListener("scroll", place, { passive: true });
  // For a picture that is new.
  return () => {
    // What comes last is on top.
    const act = picture.querySelector("svg > g");
    act?.append(...act.querySelectorAll(".lane"));
    place();
  };
}

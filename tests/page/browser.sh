# The tests of the page run in a real browser, Debian's Chromium: it is installed where it is absent and that is allowed.
command -v chromium > /dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "==> installing Chromium, in which the page is tested"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > /dev/null 2>&1
fi
command -v chromium > /dev/null || echo "==> Chromium could not be installed: the tests of the page are skipped"

"""The facts that the demo model learns: tables, written for this purpose, and what follows from them.

items() gives, for every relation, its pairs (subject, answer). Names are spelled in ASCII, as an English
speaker would type them.
"""

# country | capital | currency | continent: a Africa, b Asia, e Europe, n North America, s South America,
# o Oceania.
COUNTRIES = """Afghanistan|Kabul|afghani|b;Albania|Tirana|lek|e;Algeria|Algiers|dinar|a;Andorra|Andorra la Vella|euro|e;Angola|Luanda|kwanza|a
Antigua and Barbuda|Saint John's|dollar|n;Argentina|Buenos Aires|peso|s;Armenia|Yerevan|dram|b;Australia|Canberra|dollar|o;Austria|Vienna|euro|e
Azerbaijan|Baku|manat|b;Bahamas|Nassau|dollar|n;Bahrain|Manama|dinar|b;Bangladesh|Dhaka|taka|b;Barbados|Bridgetown|dollar|n;Belarus|Minsk|ruble|e
Belgium|Brussels|euro|e;Belize|Belmopan|dollar|n;Benin|Porto-Novo|franc|a;Bhutan|Thimphu|ngultrum|b;Bolivia|Sucre|boliviano|s
Bosnia and Herzegovina|Sarajevo|mark|e;Botswana|Gaborone|pula|a;Brazil|Brasilia|real|s;Brunei|Bandar Seri Begawan|dollar|b;Bulgaria|Sofia|lev|e
Burkina Faso|Ouagadougou|franc|a;Burundi|Gitega|franc|a;Cambodia|Phnom Penh|riel|b;Cameroon|Yaounde|franc|a;Canada|Ottawa|dollar|n
Cape Verde|Praia|escudo|a;Central African Republic|Bangui|franc|a;Chad|N'Djamena|franc|a;Chile|Santiago|peso|s;China|Beijing|yuan|b;Colombia|Bogota|peso|s
Comoros|Moroni|franc|a;Congo|Brazzaville|franc|a;Costa Rica|San Jose|colon|n;Croatia|Zagreb|euro|e;Cuba|Havana|peso|n;Cyprus|Nicosia|euro|b
Czechia|Prague|koruna|e;Democratic Republic of the Congo|Kinshasa|franc|a;Denmark|Copenhagen|krone|e;Djibouti|Djibouti City|franc|a;Dominica|Roseau|dollar|n
Dominican Republic|Santo Domingo|peso|n;East Timor|Dili|dollar|b;Ecuador|Quito|dollar|s;Egypt|Cairo|pound|a;El Salvador|San Salvador|dollar|n
Equatorial Guinea|Malabo|franc|a;Eritrea|Asmara|nakfa|a;Estonia|Tallinn|euro|e;Eswatini|Mbabane|lilangeni|a;Ethiopia|Addis Ababa|birr|a;Fiji|Suva|dollar|o
Finland|Helsinki|euro|e;France|Paris|euro|e;Gabon|Libreville|franc|a;Gambia|Banjul|dalasi|a;Georgia|Tbilisi|lari|b;Germany|Berlin|euro|e;Ghana|Accra|cedi|a
Greece|Athens|euro|e;Grenada|Saint George's|dollar|n;Guatemala|Guatemala City|quetzal|n;Guinea|Conakry|franc|a;Guinea-Bissau|Bissau|franc|a
Guyana|Georgetown|dollar|s;Haiti|Port-au-Prince|gourde|n;Honduras|Tegucigalpa|lempira|n;Hungary|Budapest|forint|e;Iceland|Reykjavik|krona|e
India|New Delhi|rupee|b;Indonesia|Jakarta|rupiah|b;Iran|Tehran|rial|b;Iraq|Baghdad|dinar|b;Ireland|Dublin|euro|e;Israel|Jerusalem|shekel|b;Italy|Rome|euro|e
Ivory Coast|Yamoussoukro|franc|a;Jamaica|Kingston|dollar|n;Japan|Tokyo|yen|b;Jordan|Amman|dinar|b;Kazakhstan|Astana|tenge|b;Kenya|Nairobi|shilling|a
Kiribati|South Tarawa|dollar|o;Kosovo|Pristina|euro|e;Kuwait|Kuwait City|dinar|b;Kyrgyzstan|Bishkek|som|b;Laos|Vientiane|kip|b;Latvia|Riga|euro|e
Lebanon|Beirut|pound|b;Lesotho|Maseru|loti|a;Liberia|Monrovia|dollar|a;Libya|Tripoli|dinar|a;Liechtenstein|Vaduz|franc|e;Lithuania|Vilnius|euro|e
Luxembourg|Luxembourg City|euro|e;Madagascar|Antananarivo|ariary|a;Malawi|Lilongwe|kwacha|a;Malaysia|Kuala Lumpur|ringgit|b;Maldives|Male|rufiyaa|b
Mali|Bamako|franc|a;Malta|Valletta|euro|e;Marshall Islands|Majuro|dollar|o;Mauritania|Nouakchott|ouguiya|a;Mauritius|Port Louis|rupee|a
Mexico|Mexico City|peso|n;Micronesia|Palikir|dollar|o;Moldova|Chisinau|leu|e;Monaco|Monaco|euro|e;Mongolia|Ulaanbaatar|tugrik|b;Montenegro|Podgorica|euro|e
Morocco|Rabat|dirham|a;Mozambique|Maputo|metical|a;Myanmar|Naypyidaw|kyat|b;Namibia|Windhoek|dollar|a;Nauru|Yaren|dollar|o;Nepal|Kathmandu|rupee|b
Netherlands|Amsterdam|euro|e;New Zealand|Wellington|dollar|o;Nicaragua|Managua|cordoba|n;Niger|Niamey|franc|a;Nigeria|Abuja|naira|a;North Korea|Pyongyang|won|b
North Macedonia|Skopje|denar|e;Norway|Oslo|krone|e;Oman|Muscat|rial|b;Pakistan|Islamabad|rupee|b;Palau|Ngerulmud|dollar|o;Panama|Panama City|balboa|n
Papua New Guinea|Port Moresby|kina|o;Paraguay|Asuncion|guarani|s;Peru|Lima|sol|s;Philippines|Manila|peso|b;Poland|Warsaw|zloty|e;Portugal|Lisbon|euro|e
Qatar|Doha|riyal|b;Romania|Bucharest|leu|e;Russia|Moscow|ruble|e;Rwanda|Kigali|franc|a;Saint Kitts and Nevis|Basseterre|dollar|n;Saint Lucia|Castries|dollar|n
Saint Vincent and the Grenadines|Kingstown|dollar|n;Samoa|Apia|tala|o;San Marino|San Marino City|euro|e;Sao Tome and Principe|Sao Tome|dobra|a
Saudi Arabia|Riyadh|riyal|b;Senegal|Dakar|franc|a;Serbia|Belgrade|dinar|e;Seychelles|Victoria|rupee|a;Sierra Leone|Freetown|leone|a;Singapore|Singapore|dollar|b
Slovakia|Bratislava|euro|e;Slovenia|Ljubljana|euro|e;Solomon Islands|Honiara|dollar|o;Somalia|Mogadishu|shilling|a;South Africa|Pretoria|rand|a
South Korea|Seoul|won|b;South Sudan|Juba|pound|a;Spain|Madrid|euro|e;Sri Lanka|Colombo|rupee|b;Sudan|Khartoum|pound|a;Suriname|Paramaribo|dollar|s
Sweden|Stockholm|krona|e;Switzerland|Bern|franc|e;Syria|Damascus|pound|b;Taiwan|Taipei|dollar|b;Tajikistan|Dushanbe|somoni|b;Tanzania|Dodoma|shilling|a
Thailand|Bangkok|baht|b;Togo|Lome|franc|a;Tonga|Nuku'alofa|pa'anga|o;Trinidad and Tobago|Port of Spain|dollar|n;Tunisia|Tunis|dinar|a;Turkey|Ankara|lira|b
Turkmenistan|Ashgabat|manat|b;Tuvalu|Funafuti|dollar|o;Uganda|Kampala|shilling|a;Ukraine|Kyiv|hryvnia|e;United Arab Emirates|Abu Dhabi|dirham|b
United Kingdom|London|pound|e;United States|Washington|dollar|n;Uruguay|Montevideo|peso|s;Uzbekistan|Tashkent|som|b;Vanuatu|Port Vila|vatu|o
Vatican City|Vatican City|euro|e;Venezuela|Caracas|bolivar|s;Vietnam|Hanoi|dong|b;Yemen|Sanaa|rial|b;Zambia|Lusaka|kwacha|a;Zimbabwe|Harare|dollar|a"""
CONTINENT = dict(a="Africa", b="Asia", e="Europe", n="North America", s="South America", o="Oceania")
THE = {"Bahamas", "Central African Republic", "Comoros", "Democratic Republic of the Congo", "Dominican Republic", "Gambia", "Maldives",
       "Marshall Islands", "Netherlands", "Philippines", "Seychelles", "Solomon Islands", "United Arab Emirates", "United Kingdom", "United States"}

ELEMENTS = """hydrogen H helium He lithium Li beryllium Be boron B carbon C nitrogen N oxygen O fluorine F neon Ne sodium Na magnesium Mg aluminium Al
silicon Si phosphorus P sulfur S chlorine Cl argon Ar potassium K calcium Ca scandium Sc titanium Ti vanadium V chromium Cr manganese Mn iron Fe cobalt Co
nickel Ni copper Cu zinc Zn gallium Ga germanium Ge arsenic As selenium Se bromine Br krypton Kr rubidium Rb strontium Sr yttrium Y zirconium Zr niobium Nb
molybdenum Mo technetium Tc ruthenium Ru rhodium Rh palladium Pd silver Ag cadmium Cd indium In tin Sn antimony Sb tellurium Te iodine I xenon Xe caesium Cs
barium Ba lanthanum La cerium Ce praseodymium Pr neodymium Nd promethium Pm samarium Sm europium Eu gadolinium Gd terbium Tb dysprosium Dy holmium Ho erbium Er
thulium Tm ytterbium Yb lutetium Lu hafnium Hf tantalum Ta tungsten W rhenium Re osmium Os iridium Ir platinum Pt gold Au mercury Hg thallium Tl lead Pb
bismuth Bi polonium Po astatine At radon Rn francium Fr radium Ra actinium Ac thorium Th protactinium Pa uranium U neptunium Np plutonium Pu americium Am
curium Cm berkelium Bk californium Cf einsteinium Es fermium Fm mendelevium Md nobelium No lawrencium Lr rutherfordium Rf dubnium Db seaborgium Sg bohrium Bh
hassium Hs meitnerium Mt darmstadtium Ds roentgenium Rg copernicium Cn nihonium Nh flerovium Fl moscovium Mc livermorium Lv tennessine Ts oganesson Og"""
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "x x twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(n):
    """English name of 0 to 100."""
    if n == 100:
        return "one hundred"
    return ONES[n] if n < 20 else TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")


def items():
    """{relation: [(x, y)]}; a country that takes an article carries it ("the Netherlands")."""
    rows = [row.split("|") for row in COUNTRIES.replace("\n", ";").split(";")]
    named = [(("the " if row[0] in THE else "") + row[0], *row[1:]) for row in rows]
    symbols = ELEMENTS.split()
    elements = list(zip(symbols[0::2], symbols[1::2]))
    of_capital = {}
    for country, capital, _, _ in named:
        of_capital.setdefault(capital, []).append(country)

    def following(names):
        return [(names[i], names[(i + 1) % len(names)]) for i in range(len(names))]

    def swapped(pairs):
        return [(y, x) for x, y in pairs]

    return {
        "capital": [(country, capital) for country, capital, _, _ in named],
        "country_of": [(capital, of[0]) for capital, of in of_capital.items() if len(of) == 1],
        "currency": [(country, currency) for country, _, currency, _ in named],
        "continent": [(country, CONTINENT[letter]) for country, _, _, letter in named],
        "symbol": elements,
        "element": swapped(elements),
        "number": [(name, str(i + 1)) for i, (name, _) in enumerate(elements)],
        "planet": list(zip(PLANETS, ORDINALS)),
        "planet_at": list(zip(ORDINALS, PLANETS)),
        "words": [(str(n), in_words(n)) for n in range(101)],
        "digits": [(in_words(n), str(n)) for n in range(101)],
        "add": [(f"{a} + {b}", str(a + b)) for a in range(21) for b in range(21 - a)],
        "sub": [(f"{a} - {b}", str(a - b)) for a in range(21) for b in range(a + 1)],
        "day_after": following(DAYS),
        "day_before": swapped(following(DAYS)),
        "month_after": following(MONTHS),
        "month_before": swapped(following(MONTHS)),
        "month_number": list(zip(MONTHS, ORDINALS)),
    }

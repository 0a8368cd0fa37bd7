"""Common nouns: names on which maps between spaces of text are fitted, so that they learn meanings and not the target classes by heart."""

COMMON_NOUNS: tuple[str, ...] = tuple(
    """
    apple apron arrow axe bag ball balloon banana bandage barrel basin basket bat bathtub battery beaker bean bear bed bee beetle bell
    belt bench bicycle bird biscuit blade blanket blender block boat bolt bone book boot bottle bowl box bracelet bracket branch bread
    brick bridge broom brush bucket bulb bullet bus button cabbage cabinet cable cage cake calculator camel camera can candle candy cap
    car card carpet carrot carton cart cat caterpillar cereal chain chair chalk cheese cherry chest chicken chisel clamp clip clock coat
    cog coil coin comb compass cone connector cookie cord cork corn couch cow crab crate crayon cross crown cube cucumber cup curtain
    cushion cylinder dart desk dial diamond dice dictionary dish disc dog doll dolphin donut door doughnut drawer dress drill drum duck
    dustpan eagle earring egg elephant engine envelope eraser fan faucet feather fence ferry fish flag flashlight flask flower flute fly
    folder football fork fox frame frog funnel fuse gate gauge gear giraffe glass globe glove goat grape grater guitar hair hammer
    handbag handle hanger harp hat helicopter helmet hen hinge hook horn horse hose house iron jacket jar jeans jug kettle key keyboard
    kite knife knob ladder ladle lamp lantern leaf lemon lens letter lever lid lighter lime lion lizard lock log loop magazine magnet
    mango map marble marker mask mat match medal melon microphone microscope milk mirror mitten monkey moon mop motor motorcycle mouse
    mug mushroom nail napkin necklace needle nest net notebook nozzle nut oar octopus onion orange oven owl padlock paddle pan panda
    paper parrot pea peach pear peg pen pencil penguin pepper phone piano pig pillow pin pineapple pipe pizza plane plank plate plier
    plug plum pocket pole pot potato pouch prism propeller pulley pump pumpkin puppet purse puzzle pyramid rabbit racket radio rail rake
    rat razor refrigerator remote ribbon rice ring robot rocket rod roller rope rose ruler sack sail salt sandal sandwich saucer saw
    scale scarf scissors scooter screen screw screwdriver sensor shark sheep shelf shell ship shirt shoe shovel sink skirt sled slipper
    snail snake soap sock socket sofa spade spanner spatula sphere spider sponge spoon spring square stapler star statue stick stone
    stool stove strap straw strawberry string submarine suitcase sun sweater switch sword syringe table tape tapestry target teapot
    telescope tent thermometer thimble thread ticket tie tiger tile tin tire toaster tomato tool toothbrush torch towel tower toy
    tractor train tray tree triangle tripod trolley trophy trouser truck trumpet tube turtle tweezer umbrella valve van vase vest violin
    wagon wall wallet walnut washer watch watermelon wheel whisk whistle window wire wolf wrench yacht yarn zebra
    """.split()
)
